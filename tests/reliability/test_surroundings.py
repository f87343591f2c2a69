"""What a process is given may be gone, full, or of another kind: one line, and no work is lost."""

import os
import resource
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import REPOSITORY, TINY, run_script

from minigpt import saved_runs, storage
from minigpt.trainer import Trainer
from minigpt.training_log import read_metrics

from .golden import ended, errors_in, failpoint, forked
from .test_signals import at_call, ended_in_time, finish

pytestmark = pytest.mark.filterwarnings("ignore:.*fork")


def one_line(done, exit_code):
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and done.returncode == exit_code, done.stderr
    return line


# ------------------------------------------------------------------------------ the terminal


@pytest.mark.parametrize("times", [1, 2])
def test_a_closed_terminal_saves_and_ends_however_often_it_is_told(golden, tmp_path, record, times):
    run_dir, said = tmp_path / "run", tmp_path / "said"

    def hang_up(name, path):
        signal.raise_signal(signal.SIGHUP)

    def work():
        at_call(Trainer, "due", 30, signal.SIGHUP)
        with failpoint(hang_up if times > 1 else None):
            return golden.train(run_dir)

    signal_before = signal.getsignal(signal.SIGHUP)
    assert ended_in_time(forked(work, said)) == 128 + signal.SIGHUP, said.read_text()
    assert signal.getsignal(signal.SIGHUP) == signal_before
    assert errors_in(said) in ([], ["error: stopped"])
    finish(golden, run_dir)
    record("C", 1)


def test_nohup_outlives_the_terminal(golden, tmp_path, record):
    run_dir, said = tmp_path / "run", tmp_path / "said"

    def work():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        at_call(Trainer, "due", 30, signal.SIGHUP)
        return golden.train(run_dir)

    assert ended(forked(work, said)) == 0, said.read_text()
    golden.require(run_dir, 60)
    record("C", 1)


def test_a_reader_who_leaves_ends_a_training_with_all_saved(text_file, tmp_path):
    words = [f"data.path={text_file}", "run_dir=run", *TINY, "max_steps=100000"]
    command = [
        sys.executable,
        str(REPOSITORY / "scripts" / "train.py"),
        *words,
        "schedule=constant",
    ]
    training = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not training.stdout.readline().startswith("iter 8:"):
        assert training.poll() is None
    training.stdout.close()
    assert training.wait(60) == 130 and not training.stderr.read()
    training.stderr.close()
    newest, damaged = saved_runs.last_good(tmp_path / "run")
    steps = [r["step"] for r in read_metrics(tmp_path / "run") if "train_loss" in r]
    assert not damaged and steps == list(range(1, saved_runs.step_of(newest) + 1))


def test_a_full_console_costs_no_training(text_file, tmp_path):
    with open("/dev/full", "w") as full:
        words = [f"data.path={text_file}", "run_dir=run", *TINY]
        consoles = {"capture_output": False, "stdout": full, "stderr": full}
        done = run_script("train.py", *words, cwd=tmp_path, **consoles)
        assert done.returncode == 0
        assert saved_runs.step_of(saved_runs.last_good(tmp_path / "run")[0]) == 12
        assert (tmp_path / "run" / "summary.json").exists()
        told = {"capture_output": False, "stdout": full, "stderr": subprocess.PIPE}
        assert "No space" in one_line(run_script("check_run.py", "run", cwd=tmp_path, **told), 5)


def test_a_console_that_lacks_a_character_shows_its_number(tiny_run, tmp_path):
    shutil.copytree(tiny_run, tmp_path / "café")
    ascii = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = run_script("check_run.py", "café", cwd=tmp_path, env=ascii)
    assert (done.returncode, done.stderr) == (0, "") and r"caf\xe9" in done.stdout


# ------------------------------------------------------------------------------ the places


def test_a_current_folder_that_was_removed_is_one_line(tiny_run, tmp_path):
    def leave():
        os.mkdir(tmp_path / "gone")
        os.chdir(tmp_path / "gone")
        os.rmdir(tmp_path / "gone")

    for script in ("train.py", "generate.py", "check_run.py"):
        done = run_script(script, str(tiny_run), cwd=tmp_path, preexec_fn=leave)
        assert "current folder" in one_line(done, 3)


@pytest.mark.parametrize("name", ["metrics.jsonl", "samples.txt", "loss.png", "summary.json"])
def test_a_folder_in_the_place_of_a_file_is_told_before_anything_is_learned(golden, tmp_path, name):
    (tmp_path / "run" / name).mkdir(parents=True)
    assert ended(forked(lambda: golden.train(tmp_path / "run"), tmp_path / "said")) == 3
    (line,) = errors_in(tmp_path / "said")
    assert f"{name}: is a folder" in line and "iter" not in (tmp_path / "said").read_text()


def test_a_file_in_the_place_of_the_checkpoints_is_told_before_anything_is_learned(
    golden, tmp_path
):
    storage.write_text(tmp_path / "run" / "checkpoints", "mine")
    assert ended(forked(lambda: golden.train(tmp_path / "run"), tmp_path / "said")) == 3
    (line,) = errors_in(tmp_path / "said")
    assert "checkpoints: can't be written" in line
    assert "iter" not in (tmp_path / "said").read_text()
    assert (tmp_path / "run" / "checkpoints").read_text() == "mine"


def test_a_damaged_log_is_no_reason_not_to_go_on(golden, tmp_path):
    golden.stopped_at(9, tmp_path / "run")
    before = read_metrics(tmp_path / "run")
    damage = ['{"step": "x", "seconds": 1}', '{"step": 5, "seconds": null}', '{"step": 3}', "[1]"]
    damage += ['{"step": 4, "seconds": 1, "train_loss": "low"}', '{"step": 9, "sec', "\0\0", "9"]
    with (tmp_path / "run" / "metrics.jsonl").open("a") as log:
        log.write("\n".join(damage))
    assert read_metrics(tmp_path / "run") == before
    golden.go_on(tmp_path / "run")
    golden.require(tmp_path / "run", 60)


def test_too_little_memory_for_pytorch_itself_is_one_line(tiny_run, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (200 * 2**20, 200 * 2**20))

    done = run_script("generate.py", str(tiny_run), cwd=tmp_path, preexec_fn=limit)
    assert "memory: not enough of it" in one_line(done, 5)
