"""The scripts as a stranger meets them: quick help, one-line errors, colours where they belong."""

import re
import signal
import subprocess
import sys
import time

import pytest
import torch
from conftest import REPOSITORY, TINY, run_script

from minigpt.errors import RESOURCES, run_command

SCRIPTS = sorted(path.name for path in (REPOSITORY / "scripts").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_answers_without_pytorch(script, tmp_path):
    code = (
        "import os, sys, runpy; sys.argv = [sys.argv[1], '--help']\n"
        "sys.path.insert(0, os.path.dirname(sys.argv[0]))\n"  # as Python does with a script
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "finally: print('torch' in sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, str(REPOSITORY / "scripts" / script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == "False\n"
    assert len(done.stdout) > 100


def test_the_walkthrough_shows_every_step_and_that_all_ways_agree(tmp_path):
    done = run_script("walkthrough.py", "--color=never", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for part in ("queries (5, 6)", "head 1 (5, 3)", "weights of head 0 (5, 5)", "-inf", "e-1"):
        assert part in done.stdout
    assert "\033" not in done.stdout
    assert "\033" in run_script("walkthrough.py", "--color=always", cwd=tmp_path).stdout


def test_a_dry_run_tells_sizes_and_makes_nothing(tmp_path, text_file):
    done = run_script("train.py", f"data.path={text_file}", *TINY, "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for part in ("parameters", "tokens per step   96", "steps per epoch", "num_layers: 2"):
        assert part in done.stdout
    assert not (tmp_path / "runs").exists()


def test_a_second_dry_run_is_quick(tmp_path, text_file):
    arguments = ["train.py", f"data.path={text_file}", *TINY, "--dry-run"]
    run_script(*arguments, cwd=tmp_path)
    seconds = []
    for _ in range(3):
        started = time.monotonic()
        run_script(*arguments, cwd=tmp_path)
        seconds.append(time.monotonic() - started)
    assert min(seconds) < 3  # half a second on an idle machine; PyTorch alone takes longer


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_option_that_is_none_is_one_line(script, tmp_path):
    done = run_script(script, "--bogus=1", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: command line: ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("output", ["", "a folder", "a file/story", "x" * 300])
def test_a_place_that_cannot_be_written_is_one_line(tmp_path, output):
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a file").touch()
    done = run_script("make_stories.py", "--count=1", f"--output={output}", cwd=tmp_path)
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1
    assert {path.name for path in tmp_path.rglob("*")} == {"a folder", "a file"}


def test_lack_of_memory_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # those of this process stay
    with pytest.raises(SystemExit) as caught:
        run_command(lambda _: torch.empty(10**15))
    assert caught.value.code == RESOURCES
    need, have = r"4000000000000000 bytes more were asked for", r"\d+ MiB in all"
    line = rf"error: memory: not enough of it \({need}, {have}\); use a smaller model, batch or "
    assert re.fullmatch(line + "context\n", capsys.readouterr().err)
    with pytest.raises(RuntimeError):
        run_command(lambda _: torch.zeros(2) @ torch.zeros(3))


@pytest.mark.parametrize("script", ["walkthrough.py", "generate.py", "train.py"])
def test_closed_consoles_are_no_mistake(script, tmp_path):
    """What is printed goes nowhere, above all not into a file that was opened meanwhile."""
    command = f'exec "$0" "$1" {"" if script == "walkthrough.py" else "--help"} <&- >&- 2>&-'
    path = str(REPOSITORY / "scripts" / script)
    done = subprocess.run(["sh", "-c", command, sys.executable, path], cwd=tmp_path, check=False)
    assert done.returncode == 0


def test_any_text_trains_with_no_other_setting(tmp_path):
    (tmp_path / "my text.txt").write_text("To be, or not to be, that is the question.\n" * 400)
    done = run_script("train.py", "data.path=my text.txt", "max_steps=2", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")  # no bar where nobody watches
    assert (tmp_path / "runs" / "my text-1" / "summary.json").exists()
    assert "generate.py 'runs/my text-1'" in done.stdout


EXTRAS = (
    "pyarrow backports.zstd tensorboard wandb transformers huggingface_hub gguf onnx onnxscript"
)


def test_without_any_extra_all_else_works(tmp_path, text_file):
    """None of these packages is asked for by what does not need it; so none slows a start."""
    commands = [
        ["train.py", f"data.path={text_file}", *TINY, "run_dir=run"],
        ["generate.py", "run", "--num-samples=1"],
        ["inspect_heads.py", "run", "--text=The red dog"],
        ["explore.py", "run", "--fast"],
        ["convert.py", "export", "run", "out"],
        ["check_run.py", "run"],
    ]
    code = (
        "import runpy, sys\n"
        f"sys.modules |= dict.fromkeys({EXTRAS.split()})\n"  # as if they were not installed
        f"for words in {commands}:\n"
        f"    sys.argv = [{str(REPOSITORY / 'scripts')!r} + '/' + words[0], *words[1:]]\n"
        "    try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "    except SystemExit as end: assert not end.code, words\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert (tmp_path / "run" / "explorer.html").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["data.path=nowhere.txt"], 3, "nowhere.txt"),
        (["data.path=~nobody-here/a.txt"], 3, "~nobody-here/a.txt"),
        (["--resume"], 3, "no trained run"),
        (["--resume", "nowhere"], 2, "nowhere"),
        (["configs/nowhere.yaml"], 2, "nowhere.yaml"),
        (["max_steps=two"], 2, "'two'"),
    ],
)
def test_mistakes_are_one_line_with_an_exit_code(tmp_path, arguments, code, words):
    done = run_script("train.py", *arguments, cwd=tmp_path)
    assert done.returncode == code
    assert len(done.stderr.strip().splitlines()) == 1
    assert words in done.stderr
    assert not (tmp_path / "runs").exists()
