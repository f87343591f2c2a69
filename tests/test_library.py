"""minigpt as a library: the README's own lines, names that cost nothing, and the notebook."""

import inspect
import subprocess
import sys

import pytest
from conftest import REPOSITORY

import minigpt

NOTEBOOK = REPOSITORY / "notebooks" / "tour.ipynb"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder where the stories need to be made only once."""
    return tmp_path_factory.mktemp("home")


def run_python(code: str, cwd) -> subprocess.CompletedProcess:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_lines_in_the_readme_train_write_and_look(home):
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (code,) = [part.split("```")[0] for part in readme.split("```python\n")[1:]]
    assert len([line for line in code.splitlines() if line]) <= 10
    fewer = code.replace("max_steps=200", "max_steps=20")
    done = run_python(fewer + "\nopen('a.png', 'wb').write(picture.png())\n", home)
    assert done.returncode == 0, done.stderr
    assert "One day Lily Reed met Tom Fox. Little Lily" in done.stdout
    assert done.stdout.endswith("layers, texts, heads, queries, keys: (3, 1, 4, 10, 10)\n")
    assert (home / "a.png").read_bytes().startswith(b"\x89PNG")
    assert list(home.glob("runs/stories-*/heads/history.jsonl"))


def test_every_name_is_there_and_explained():
    assert len(minigpt.__all__) == 8
    for name in minigpt.__all__:
        value = getattr(minigpt, name)
        assert callable(value) and name in dir(minigpt)
        assert len(inspect.getdoc(value)) > 30
    with pytest.raises(AttributeError, match="no attribute 'generat'"):
        _ = minigpt.generat


def test_a_model_that_begins_with_another_takes_its_settings(tiny_run):
    config = minigpt.load_config(None, [f"init_from={tiny_run}", "data.path=my.txt"])
    assert config.model == minigpt.load_run(tiny_run).config.model


def test_importing_it_imports_nothing_large(tmp_path):
    code = "import sys, minigpt\nprint({'torch', 'numpy', 'pydantic'} & set(sys.modules))"
    assert run_python(code, tmp_path).stdout == "set()\n"


def test_the_notebook_runs_as_it_is_kept(home):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    kept = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert NOTEBOOK.stat().st_size < 400_000
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(home)}})
    client.execute()
    pictures = [
        output
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) >= 2 and kept
