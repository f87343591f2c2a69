"""C: Ctrl-C and `kill` at any moment: saved, the right exit code, at most one line, no hang."""

import contextlib
import os
import signal
import time

import pytest

from minigpt import saved_runs, storage, text, trainer
from minigpt.data import Split
from minigpt.text import open_text
from minigpt.trainer import Trainer

from .golden import STEPS, again, ended, errors_in, failpoint, forked

pytestmark = pytest.mark.filterwarnings("ignore:.*fork")
SIGNALS = [signal.SIGINT, signal.SIGTERM]


def at_call(owner, name, number, signal_number):
    """Sends this process a signal before the call `number` of a function."""
    call, calls = getattr(owner, name), iter(range(number))

    def do(*arguments, **more):
        if next(calls, None) is None and not do.done:
            do.done = True
            signal.raise_signal(signal_number)
        return call(*arguments, **more)

    do.done = False
    setattr(owner, name, do)


def at_move(number, signal_number):
    left = iter(range(number))

    def look(name, path):
        if next(left, None) is None and not look.done:
            look.done = True
            signal.raise_signal(signal_number)

    look.done = False
    storage.on_failpoint = look


PHASES = {
    "building": lambda n: at_call(Trainer, "description", 0, n),
    "between micro-steps": lambda n: at_call(trainer, "token_losses", 22, n),
    "the optimiser": lambda n: at_call(Trainer, "due", 30, n),
    "evaluating": lambda n: at_call(Split, "windows", 1, n),
    "saving": lambda n: at_move(40, n),
    "sampling": lambda n: at_call(trainer, "generate", 1, n),
    "the last step": lambda n: at_call(Trainer, "train_step", STEPS - 1, n),
    "tokenising": lambda n: at_call(text, "write_ids", 1, n),
}


def finish(golden, run_dir):
    """Whatever was interrupted: the run goes on to where it would have come."""
    if saved_runs.last_good(run_dir)[0] is None or not run_dir.exists():
        assert not saved_runs.checkpoints(run_dir)
    golden.go_on(run_dir)
    golden.require(run_dir, STEPS)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("phase", PHASES)
def test_a_signal_in_any_phase_saves_and_ends(golden, tmp_path, record, phase, number):
    run_dir, said, cache = tmp_path / "run", tmp_path / "said", tmp_path / "cache"

    def work():
        PHASES[phase](number)
        corpus = open_text(golden.config(), cache)
        return trainer.train(golden.config(), corpus, run_dir)

    assert ended_in_time(forked(work, said)) == 128 + number, said.read_text()
    assert errors_in(said) in ([], ["error: stopped"])
    assert not [*cache.glob(".*")]
    finish(golden, run_dir)
    record("C", 1)


def ended_in_time(pid):
    for _ in range(600):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    ended(pid)
    raise AssertionError("it hangs")


@pytest.mark.nightly
@pytest.mark.parametrize("case", range(50))
def test_a_signal_at_a_random_moment_saves_and_ends(golden, tmp_path, record, case):
    random, run_dir, said = again("signals", case), tmp_path / "run", tmp_path / "said"
    number = random.choice(SIGNALS)
    pid = forked(lambda: golden.go_on(run_dir), said)
    while "parameters" not in (said.read_text() if said.exists() else ""):
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.5))
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
    assert ended_in_time(pid) in (128 + number, 0), said.read_text()
    assert errors_in(said) in ([], ["error: stopped"])
    finish(golden, run_dir)
    record("C", 1)


def test_a_second_signal_ends_it_at_once(golden, tmp_path, record):
    run_dir, said = tmp_path / "run", tmp_path / "said"

    def work():
        def twice(name, path):
            signal.raise_signal(signal.SIGTERM)

        with failpoint(None):
            return golden.train(
                run_dir, observers=[lambda *_: setattr(storage, "on_failpoint", twice)]
            )

    assert ended_in_time(forked(work, said)) == 128 + signal.SIGTERM
    errors_in(said)
    finish(golden, run_dir)
    record("C", 1)
