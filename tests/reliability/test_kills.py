"""A2: killed at any moment and resumed, a run ends as if nothing had happened."""

import os
import signal
import time

import pytest

from minigpt import saved_runs
from minigpt.training_log import read_metrics

from .golden import STEPS, again, ended, errors_in, failpoint, forked, kill_at_failpoint

pytestmark = pytest.mark.filterwarnings("ignore:.*fork")


def killed(golden, run_dir, said, random, inside_a_save):
    """Trains in a process that is killed; -> whether it was, or came to its end before."""

    def work():
        look = kill_at_failpoint(random.randrange(120)) if inside_a_save else None
        with failpoint(look):
            return golden.go_on(run_dir)

    pid = forked(work, said)
    if not inside_a_save:
        time.sleep(random.uniform(0, 0.5))
        os.kill(pid, signal.SIGKILL)
    code = ended(pid)
    assert code in (0, -signal.SIGKILL), said.read_text()
    return code != 0


@pytest.mark.parametrize("kills", [20, pytest.param(100, marks=pytest.mark.nightly)])
def test_killed_again_and_again_it_ends_the_same(golden, tmp_path, record, kills):
    said, number, runs, tries = tmp_path / "said", 0, 0, 0
    while number < kills:
        runs += 1
        run_dir = tmp_path / f"run-{runs}"
        while number < kills:
            tries += 1  # the next is another, also where this one came too late
            if not killed(golden, run_dir, said, again(kills, tries), number % 2):
                break  # it was done before
            number += 1
            assert not errors_in(said)
            if saved_runs.checkpoints(run_dir):
                golden.require(run_dir)
        if (run_dir / "checkpoints").exists() or not run_dir.exists():
            golden.go_on(run_dir)
            golden.require(run_dir, STEPS)
            steps = [r["step"] for r in read_metrics(run_dir) if "train_loss" in r]
            assert steps == list(range(1, STEPS + 1))
    record("A2", kills)
