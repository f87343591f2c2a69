"""I: of two trainers on one run one wins; who reads while it trains sees whole checkpoints."""

import os
import signal
import time

import pytest

from minigpt import checkpoint, saved_runs
from minigpt.errors import LOCKED

from .golden import STEPS, ended, errors_in, forked, hash_of

pytestmark = pytest.mark.filterwarnings("ignore:.*fork")


@pytest.mark.parametrize("case", range(20))
def test_of_two_trainers_one_wins(golden, tmp_path, record, case):
    run_dir, start = tmp_path / "run", time.monotonic() + 0.05
    if case % 2:
        golden.stopped_at(4, run_dir)

    def work():
        time.sleep(max(start - time.monotonic(), 0))
        return golden.go_on(run_dir)

    said = [tmp_path / f"said-{number}" for number in range(2)]
    processes = [forked(work, path) for path in said]
    codes = [ended(process) for process in processes]
    for code, path in zip(codes, said, strict=True):
        errors = errors_in(path)
        if code == LOCKED:
            assert "in use by " in errors[0]  # its number, once it has written it down
        elif code:
            assert len(errors) == 1 and "already holds a run" in errors[0], path.read_text()
    assert 0 in codes
    golden.require(run_dir, STEPS)
    record("I", 1)


def test_readers_never_see_half_of_anything(golden, tmp_path, record):
    run_dir, said = tmp_path / "run", tmp_path / "said"
    golden.stopped_at(2, run_dir)
    settings = ["save_interval=1", "keep=2", "max_steps=1000000", "min_p=0.1"]
    pid = forked(lambda: golden.go_on(run_dir, *settings), said)
    steps = []
    for number in range(60):
        run = checkpoint.load_run(run_dir, ("last", "best")[number % 2])
        steps.append(run.step)
        assert all(weight.isfinite().all() for weight in run.model.parameters())
        for folder in saved_runs.checkpoints(run_dir)[-1:]:
            hash_of(folder)
    os.kill(pid, signal.SIGTERM)
    assert ended(pid) == 128 + signal.SIGTERM
    assert not errors_in(said)
    assert len(set(steps)) > 5
    record("I", 60)
