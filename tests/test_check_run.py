"""scripts/check_run.py: what is damaged is named, what is whole is said to be."""

import shutil

import pytest
from conftest import run_script

from minigpt.saved_runs import best_checkpoint, checkpoints


@pytest.fixture
def run(tiny_run, tmp_path):
    return shutil.copytree(tiny_run, tmp_path / "a run")


def flip(path, place=-1):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_a_whole_run_is_said_to_be_whole(run, tmp_path):
    done = run_script("check_run.py", str(run), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [
        [folder.name, "good"] for folder in checkpoints(run)
    ]
    assert lines[-1].startswith(f"last good: {checkpoints(run)[-1].name}; best: ")
    assert last == f"all {len(lines) - 1} checkpoints of {run} are whole"


@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"]
)
def test_one_flipped_bit_is_found_and_the_last_good_one_named(run, tmp_path, name):
    *_, before, newest = checkpoints(run)
    flip(newest / name, 40)
    done = run_script("check_run.py", str(run), cwd=tmp_path)
    assert done.returncode == 3
    assert f"{newest.name}  damaged" in done.stdout and name in done.stdout
    assert f"last good: {before.name}" in done.stdout
    assert len(done.stderr.splitlines()) == 1 and "--resume" in done.stderr


def test_all_damaged_and_none_at_all_are_one_line(run, tmp_path):
    for folder in checkpoints(run):
        flip(folder / "model.safetensors")
    done = run_script("check_run.py", str(run), cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1)
    assert "all its checkpoints are damaged" in done.stderr
    done = run_script("check_run.py", "nowhere", cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1)


def test_a_run_that_lacks_what_belongs_to_all_its_checkpoints_is_not_called_whole(run, tmp_path):
    (run / "tokenizer.json").rename(tmp_path / "tokenizer.json")
    done = run_script("check_run.py", str(run), cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1)
    assert "tokenizer.json: not that of" in done.stderr
    (run / "config.yaml").unlink()
    done = run_script("check_run.py", str(run), cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_damaged_best_one_is_not_recommended(run, tmp_path):
    best = best_checkpoint(run)
    flip(best / "model.safetensors")
    done = run_script("check_run.py", str(run), cwd=tmp_path)
    assert f"best: {best.name}, which is damaged" in done.stdout
