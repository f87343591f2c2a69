"""M: whatever a run lives through, it ends as the golden one, or one line says why not."""

import contextlib
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from minigpt import checkpoint, saved_runs, storage
from minigpt.errors import UserError

from .golden import STEPS, failpoint


class Cut(BaseException):
    """The machine stops here: nothing after it happens in this life."""


def cut_at(number):
    left = iter(range(number))

    def look(name, path):
        if next(left, None) is None:
            raise Cut

    return look


class Life(RuleBasedStateMachine):
    golden = None  # set below

    @initialize()
    def begin(self):
        self.home = Path(tempfile.mkdtemp())
        self.run_dir = self.home / "run"
        self.damaged = False

    def teardown(self):
        if hasattr(self, "home"):
            self.go_on()
            if not self.damaged or saved_runs.last_good(self.run_dir)[0]:
                self.golden.require(self.run_dir, STEPS)
            shutil.rmtree(self.home)

    def go_on(self, *more, **with_observers):
        try:
            return self.golden.go_on(self.run_dir, *more, **with_observers)
        except UserError as error:
            assert "\n" not in str(error)
            assert self.damaged and saved_runs.last_good(self.run_dir)[0] is None, error
            return None

    @rule(steps=st.integers(1, 12))
    def train_until_a_signal(self, steps):
        newest = saved_runs.last_good(self.run_dir)[0]
        until = min((saved_runs.step_of(newest) if newest else 0) + steps, STEPS)

        def look(step, model):
            if step == until:
                signal.raise_signal(signal.SIGINT)

        self.go_on(observers=[look])

    @rule(moves=st.integers(0, 150))
    def the_machine_stops(self, moves):
        with failpoint(cut_at(moves)), contextlib.suppress(Cut):
            self.go_on()

    @rule(data=st.data())
    def a_bit_flips(self, data):
        found = saved_runs.checkpoints(self.run_dir)
        if found:
            folder = data.draw(st.sampled_from(found))
            path = data.draw(st.sampled_from(sorted(folder.iterdir())))
            content = bytearray(path.read_bytes())
            place = data.draw(st.integers(0, len(content) - 1)) if content else None
            if place is not None:
                content[place] ^= 1 << data.draw(st.integers(0, 7))
                path.write_bytes(content)
                self.damaged = True

    @rule(name=st.sampled_from(["tokenizer.json", "metrics.jsonl", "samples.txt", ".lock"]))
    def a_file_is_lost(self, name):
        (self.run_dir / name).unlink(missing_ok=True)

    @rule()
    def somebody_reads(self):
        if saved_runs.checkpoints(self.run_dir):
            try:
                checkpoint.load_run(self.run_dir, "last")
            except UserError as error:
                assert "\n" not in str(error)

    @rule()
    def it_is_moved(self):
        if self.run_dir.exists():
            elsewhere = self.run_dir.with_name("b" if self.run_dir.name != "b" else "c")
            self.run_dir = self.run_dir.rename(elsewhere)


@pytest.mark.parametrize("stories", [40, pytest.param(200, marks=pytest.mark.nightly)])
def test_life_stories(golden, record, stories):
    from hypothesis.stateful import run_state_machine_as_test

    Life.golden = golden
    chosen = settings(
        max_examples=stories,
        stateful_step_count=6,
        deadline=None,
        derandomize=True,
        print_blob=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Life, settings=chosen)
    assert storage.on_failpoint is None
    record("M", stories)
