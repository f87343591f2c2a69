"""minigpt as a library: the README's own lines, names that cost nothing, and the notebook."""

import inspect
import subprocess
import sys

import pytest
from conftest import REPOSITORY

import minigpt

NOTEBOOK = REPOSITORY / "notebooks" / "tour.ipynb"


def run_python(code: str, cwd) -> subprocess.CompletedProcess:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_lines_in_the_readme_train_write_and_look(tmp_path):
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (code,) = [part.split("```")[0] for part in readme.split("```python\n")[1:]]
    assert len([line for line in code.splitlines() if line]) <= 10
    fewer = code.replace("max_steps=200", "max_steps=20")
    done = run_python(fewer + "\nopen('a.png', 'wb').write(picture.png())\n", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "One day Lily Reed met Tom Fox. Little Lily" in done.stdout
    assert done.stdout.endswith("layers, texts, heads, queries, keys: (3, 1, 4, 10, 10)\n")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "runs" / "stories-1" / "heads" / "history.jsonl").exists()


def test_every_name_is_there_and_explained():
    assert len(minigpt.__all__) == 8
    for name in minigpt.__all__:
        value = getattr(minigpt, name)
        assert callable(value) and name in dir(minigpt)
        assert len(inspect.getdoc(value)) > 30
    with pytest.raises(AttributeError, match="no attribute 'generat'"):
        _ = minigpt.generat


def test_generate_stays_the_function_when_its_module_is_imported(tmp_path):
    code = (
        "import minigpt, minigpt.trainer, minigpt.generate\n"
        "from minigpt import generate\n"
        "from minigpt.generate import generate as other\n"
        "assert generate is other is minigpt.generate\n"
    )
    assert run_python(code, tmp_path).stderr == ""


def test_importing_it_imports_nothing_large(tmp_path):
    code = "import sys, minigpt\nprint({'torch', 'numpy', 'pydantic'} & set(sys.modules))"
    assert run_python(code, tmp_path).stdout == "set()\n"


def test_the_notebook_runs_as_it_is_kept(tmp_path):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    kept = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert NOTEBOOK.stat().st_size < 400_000
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    pictures = [
        output
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) >= 2 and kept
