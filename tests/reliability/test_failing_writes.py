"""A3: every move on disk may fail once; the last good checkpoint stays, and nothing half-made."""

import errno
import os
import shutil
import signal

import pytest

from minigpt import saved_runs
from minigpt.errors import run_command
from minigpt.trainer import Trainer

from .golden import failpoint, strays

ERRORS = {
    "ENOSPC": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "EIO": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "EACCES": lambda: OSError(errno.EACCES, os.strerror(errno.EACCES)),
    "MemoryError": MemoryError,
    "Ctrl-C": KeyboardInterrupt,
}
CODES = {"ENOSPC": 5, "EIO": 5, "EACCES": 3, "MemoryError": 5, "Ctrl-C": 130}


def fail_at(number, error):
    left = iter(range(number))

    def look(name, path):
        if next(left, "now") == "now" and look.failed is None:
            look.failed = f"{name} {path.name}"
            raise error()

    look.failed = None
    return look


@pytest.fixture
def base(golden, tmp_path):
    """A run with three checkpoints, of which the next save will remove the oldest."""
    golden.stopped_at(5, tmp_path / "base")
    golden.stopped_at(9, tmp_path / "base")
    return tmp_path / "base"


@pytest.mark.parametrize("error", ERRORS)
def test_a_save_that_fails_anywhere_leaves_the_last_good_one(
    golden, base, tmp_path, capsys, record, error, monkeypatch
):
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    monkeypatch.setattr("sys.argv", ["train.py"])
    try:
        for number in range(999):
            run_dir = tmp_path / "run"
            shutil.copytree(base, run_dir)
            trainer = Trainer(golden.config(), golden.corpus, run_dir, golden.checkpoint(11))
            trainer.saved_step = 9
            look = fail_at(number, ERRORS[error])
            capsys.readouterr()
            with failpoint(look), pytest.raises(SystemExit) as end:
                run_command(lambda _, save=trainer.save: save())
            said = capsys.readouterr().err
            case = f"{error} at move {number}: {look.failed}"
            assert golden.require(run_dir) in (9, 11), case
            if look.failed is None:
                assert end.value.code in (0, None), said
                golden.require(run_dir, 11)
                break
            allowed = {3, CODES[error]} if look.failed.startswith("read") else {CODES[error]}
            assert end.value.code in allowed, f"{case}: {said}"
            assert said.startswith("error: ") and said.count("\n") == 1, f"{case}: {said}"
            assert not strays(run_dir), case
            assert len(saved_runs.checkpoints(run_dir)) >= 2, case
            trainer.save()  # the same again, now that there is room
            golden.require(run_dir, 11)
            shutil.rmtree(run_dir)
    finally:
        for place, handler in zip((signal.SIGINT, signal.SIGTERM), handlers, strict=True):
            signal.signal(place, handler)
    assert number > 20
    record("A3", number + 1)
