"""Several processes train as one does: the same losses, one voice, whole checkpoints, no hang.

Real processes, started by torchrun as people start them, on this machine's processors. Promise B2.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from conftest import REPOSITORY, TINY
from safetensors.torch import load_file

from minigpt import saved_runs
from minigpt.command_line import load_config
from minigpt.data import NOTHING, Split
from minigpt.errors import CONFIG, NON_FINITE, RESOURCES
from minigpt.text import open_text
from minigpt.trainer import train

FILES = ("model.safetensors", "optimizer.safetensors", "state.json")
OURS = f"{REPOSITORY}/minigpt/"  # in a traceback; the folder above may be called minigpt too
TRAINER = str(REPOSITORY / "scripts" / "train.py")


def torchrun(*words, number=2, script=TRAINER):
    options = ["--standalone", f"--nproc-per-node={number}"]
    return [sys.executable, "-m", "torch.distributed.run", *options, str(script), *map(str, words)]


def run(command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, encoding="utf-8", timeout=300)


def settings(text_file, *overrides):
    return [f"data.path={text_file}", *TINY, *overrides]


def train_here(text_file, run_dir, *overrides, stop_at=0, resume=False):
    """Trains in this process, until a signal after the step `stop_at`."""

    def stop(step, model):
        if step == stop_at:
            signal.raise_signal(signal.SIGINT)

    config = load_config(None, settings(text_file, *overrides))
    return train(config, open_text(config), run_dir, resume, [stop])


def last(run_dir):
    return saved_runs.find_checkpoint(run_dir, "last")


def require_same_end(first, second):
    for name in FILES:
        assert (last(first) / name).read_bytes() == (last(second) / name).read_bytes(), name


def records(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def require_same_losses(first, second, steps):
    found = []
    for run_dir in (first, second):
        rows = records(run_dir)
        assert [r["step"] for r in rows if "train_loss" in r] == list(range(1, steps + 1))
        found.append([r.get("train_loss", r.get("val_loss")) for r in rows])
    np.testing.assert_allclose(*found, rtol=0, atol=1e-6)


# ------------------------------------------------------------------------------ the same training

MANY = """
import json, os, signal, sys
from pathlib import Path

import numpy as np

from minigpt import distributed
from minigpt.command_line import load_config
from minigpt.data import NOTHING, Split
from minigpt.text import open_text
from minigpt.trainer import Trainer, train

plain_step, plain_batch = Trainer.train_step, Split.batch


def step_then_signal(self):
    plain_step(self)
    if distributed.rank() == 1 and self.state.step == stop_at:
        signal.raise_signal(signal.SIGINT)


def ragged_batch(self, *place, **size):
    x, y = plain_batch(self, *place, **size)
    return x, np.where(np.arange(24) > x[:, :1] % 20, NOTHING, y)


Trainer.train_step = step_then_signal
with distributed.joined(load_config(None, ["device=cpu"])):
    for name, overrides, stop_at, resume in json.loads(sys.argv[1]):
        Split.batch = ragged_batch if "ragged" in name else plain_batch
        config = load_config(None, overrides)
        corpus = distributed.in_turn(lambda: open_text(config))
        code = train(config, corpus, Path(name), resume)
        sys.stdout.write(f"ended {name} {code}\\n")  # at once: two processes write
os._exit(0)  # as minigpt does
"""

plain_batch = Split.batch


def ragged_batch(self, *place, **size):
    """Rows in which more or less is left to predict."""
    x, y = plain_batch(self, *place, **size)
    return x, np.where(np.arange(24) > x[:, :1] % 20, NOTHING, y)


EQUAL = {
    "one": [],
    "four": ["accumulate=4", "batch_size=2"],
    "ragged": ["accumulate=2"],
    "averaged": ["ema=0.9", "optimizer=adamw", "tie_embeddings=no", "positions=learned"],
}
LONG = {"one": 50, "four": 50}  # steps, where they are not those of TINY
WAYS = ["off", "on"]  # settings of shard


def steps_of(name):
    return [f"max_steps={LONG.get(name, 12)}", "eval_interval=10"]


@pytest.fixture(scope="module")
def home(tmp_path_factory, text_file):
    """A folder with runs by one process and by two, of which some were stopped in between."""
    home, cases = tmp_path_factory.mktemp("together"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        for name, overrides in EQUAL.items():
            patch.setattr(Split, "batch", ragged_batch if name == "ragged" else plain_batch)
            train_here(text_file, home / f"{name}-1", *overrides, *steps_of(name))
        patch.setattr(Split, "batch", plain_batch)
        train_here(text_file, home / "alone")
        for shard in WAYS:
            assert train_here(text_file, home / f"1-to-2-{shard}", stop_at=7) == 130
    for shard in WAYS:
        plain = settings(text_file, f"shard={shard}")
        dropout = [*plain, "dropout=0.2", "accumulate=2"]
        cases += [
            (f"{name}-2-{shard}", [*plain, *EQUAL[name], *steps_of(name)], 0, False)
            for name in EQUAL
        ]
        cases.append((f"whole-{shard}", dropout, 0, False))
        cases.append((f"parts-{shard}", dropout, 7, False))
        cases.append((f"parts-{shard}", dropout, 0, True))
        cases.append((f"2-to-1-{shard}", plain, 7, False))
        cases.append((f"1-to-2-{shard}", plain, 0, True))
    (home / "many.py").write_text(MANY)
    done = run(torchrun(json.dumps(cases), script="many.py"), home)
    assert done.returncode == 0, done.stderr[-6000:]
    ends = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("ended")]
    for name, _, stop_at, _ in cases:
        assert ends.count([name, "130" if stop_at else "0"]) == 2, name
    return home


@pytest.mark.parametrize("shard", WAYS)
@pytest.mark.parametrize("name", EQUAL)
def test_two_processes_have_the_losses_of_one(home, name, shard):
    require_same_losses(home / f"{name}-1", home / f"{name}-2-{shard}", steps=LONG.get(name, 12))
    ends = [load_file(last(home / f"{name}-{way}") / FILES[0]) for way in ("1", f"2-{shard}")]
    assert ends[0].keys() == ends[1].keys()
    for weight in ends[0]:
        torch.testing.assert_close(ends[0][weight], ends[1][weight], rtol=0, atol=1e-4)


@pytest.mark.parametrize("shard", WAYS)
def test_two_processes_stopped_by_a_signal_to_one_and_resumed_are_two_uninterrupted(home, shard):
    require_same_end(home / f"whole-{shard}", home / f"parts-{shard}")


@pytest.mark.parametrize("shard", WAYS)
def test_begun_by_one_and_ended_by_two(home, shard):
    require_same_losses(home / "alone", home / f"1-to-2-{shard}", steps=12)


@pytest.mark.parametrize("shard", WAYS)
def test_begun_by_two_and_ended_by_one(home, shard, text_file, monkeypatch, capsys):
    monkeypatch.chdir(home)
    run_dir = home / f"2-to-1-{shard}"
    assert train_here(text_file, run_dir, resume=True) == 0
    require_same_losses(home / "alone", run_dir, steps=12)
    assert "warning: processes was 2 and is now 1" in capsys.readouterr().out


def test_unequal_counts_are_unequal(text_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus = open_text(load_config(None, settings(text_file)))
    counts = []
    for step in range(50):
        _, targets = ragged_batch(corpus.train, 1337, step, batch_size=4, context_length=24)
        counts.append([(rows != NOTHING).sum() for rows in np.split(targets, 2)])
    assert np.mean([first != second for first, second in counts]) > 0.8


def test_the_rows_of_a_batch_are_shared_out_and_none_is_taken_twice():
    split, size = Split(np.arange(500), 500), {"context_length": 7}
    for micro_step in range(3):
        alone, _ = split.batch(5, 9, micro_step, batch_size=12, **size)
        for number in (2, 3, 4):
            rows = [
                split.batch(5, 9, micro_step, rank, number, batch_size=12 // number, **size)[0]
                for rank in range(number)
            ]
            np.testing.assert_array_equal(alone, np.concatenate(rows))


# ------------------------------------------------------------------------------ real life

ENDLESS = ["max_steps=100000", "eval_interval=100000", "sample_interval=100000"]
ENDLESS += ["train.save_interval=25", "schedule=constant", "keep=100000"]


class Training:
    """A training by two processes in the background, from its step `begun` on."""

    def __init__(self, text_file, home, name, *more, begun=60):
        self.run_dir = home / name
        where = ["--resume", name] if self.run_dir.exists() else [f"run_dir={name}"]
        words = settings(text_file, *ENDLESS, *where, *more)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.torchrun = subprocess.Popen(torchrun(*words), cwd=home, **pipes)
        while not self.torchrun.stdout.readline().startswith(f"iter {begun}:"):
            assert self.torchrun.poll() is None, self.torchrun.stderr.read()

    def process(self, rank):
        """The id of one of the two."""
        children = Path(f"/proc/{self.torchrun.pid}/task/{self.torchrun.pid}/children")
        for child in map(int, children.read_text().split()):
            if f"\0RANK={rank}\0" in Path(f"/proc/{child}/environ").read_text():
                return child
        raise AssertionError("it has ended")

    def ended(self):
        """Output and errors at the end, which comes soon."""
        output, errors = self.torchrun.communicate(timeout=120)
        assert "forcefully" not in errors  # as torchrun does with those that hang for 30 seconds
        assert OURS not in errors, "a traceback of ours"
        assert self.torchrun.returncode == 1  # torchrun's own for whatever its processes end with
        return output, errors

    def resumed(self, text_file, number, steps):
        """Goes on in so many processes until `steps` are done."""
        words = settings(text_file, *ENDLESS, f"max_steps={steps}", "--resume", self.run_dir)
        alone = [sys.executable, TRAINER, *map(str, words)]
        done = run(torchrun(*words) if number > 1 else alone, self.run_dir.parent)
        assert done.returncode == 0, done.stderr
        return done.stdout


def errors_in(text):
    return [line for line in text.splitlines() if line.startswith("error: ")]


@pytest.fixture(scope="module")
def killed(home, text_file):
    """Two trainings in which a process was killed, each with what was said then."""
    trainings = {}
    for rank in (0, 1):
        training = Training(text_file, home, f"killed-{rank}")
        os.kill(training.process(rank), signal.SIGKILL)
        trainings[rank] = training, training.ended()[1]
    return trainings


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_ends_the_others_with_one_line(killed, rank):
    _, errors = killed[rank]
    (line,) = errors_in(errors)
    assert line.startswith("error: processes: one of the 2 ended early")
    assert line.endswith("--resume")
    codes = exit_codes(errors)
    assert codes[rank] == -signal.SIGKILL
    assert codes.get(1 - rank, RESOURCES) in (RESOURCES, -signal.SIGKILL)


DEAF = """
import os, signal, time
from pathlib import Path
from minigpt import distributed
from minigpt.config import Config

distributed.GRACE = 1
distributed.ignore_signals()
deaf = Path("deaf")
with distributed.joined(Config()):
    if distributed.is_first():
        while not deaf.exists():  # until then the other can still hear, of gloo or of torchrun
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    deaf.touch()
    time.sleep(100)
"""


def test_one_that_hears_of_nothing_is_ended_as_well(tmp_path):
    """As gloo waits for ever when the other is lost at the moment of sending to it."""
    (tmp_path / "deaf.py").write_text(DEAF)
    done = run(torchrun(script="deaf.py"), tmp_path)
    (line,) = errors_in(done.stderr)
    assert line.startswith("error: processes: one of the 2 ended early")
    assert exit_codes(done.stderr) == {0: -signal.SIGKILL, 1: RESOURCES}


def test_without_torchrun_they_end_as_well(home, text_file):
    training = Training(text_file, home, "orphans")
    training.torchrun.kill()
    _, errors = training.torchrun.communicate(timeout=60)  # they hold its pipes until they end
    assert len(errors_in(errors)) == 1 and OURS not in errors


def exit_codes(errors):
    """What torchrun reports of its processes, by rank."""
    found = re.findall(r"rank +: (\d+) .*\n *exitcode +: (-?\d+)", errors)
    return {int(rank): int(code) for rank, code in found}


def require_all_of(trainings, home, text_file):
    """They go on to a common end, which is that of a training that nothing happened to."""
    steps = 10 + max(saved_runs.step_of(last(training.run_dir)) for training in trainings)
    words = settings(text_file, *ENDLESS, f"max_steps={steps}", f"run_dir=whole-{steps}")
    assert run(torchrun(*words), home).returncode == 0
    for training in trainings:
        training.resumed(text_file, 2, steps)
        require_same_end(home / f"whole-{steps}", training.run_dir)
        trained = [r["step"] for r in records(training.run_dir) if "train_loss" in r]
        assert trained == list(range(1, steps + 1))


def test_two_killed_and_resumed_are_two_uninterrupted(killed, home, text_file, record):
    require_all_of([training for training, _ in killed.values()], home, text_file)
    record("B2", len(killed))


@pytest.mark.nightly
def test_two_killed_again_and_again_are_two_uninterrupted(home, text_file, record):
    begun = 0
    for number in range(20):
        random = Random(f"together/{number}")
        begun += random.randint(1, 60)
        training = Training(text_file, home, "killed-often", begun=begun)
        time.sleep(random.uniform(0, 0.1))
        os.kill(training.process(random.randrange(2)), signal.SIGKILL)
        training.ended()
        found = saved_runs.checkpoints(training.run_dir)
        begun = saved_runs.step_of(found[-1]) if found else 0
    require_all_of([training], home, text_file)
    record("B2", 20)


def test_a_signal_to_torchrun_saves_and_one_process_can_go_on(home, text_file):
    training = Training(text_file, home, "terminated")
    training.torchrun.send_signal(signal.SIGTERM)
    output, errors = training.ended()
    assert output.count("stopped and saved at step") == 1
    assert errors_in(errors) == []
    step = saved_runs.step_of(last(training.run_dir))
    assert f"saved at step {step}; go on with" in output
    assert "warning: processes was 2" in training.resumed(text_file, 1, step + 5)


@pytest.mark.parametrize(("rank", "number"), [(1, signal.SIGTERM), (0, signal.SIGINT)])
def test_a_signal_to_one_process_saves_and_ends_both_with_its_exit_code(
    home, text_file, rank, number
):
    training = Training(text_file, home, f"signal-{rank}", f"shard={bool(rank)}")
    os.kill(training.process(rank), number)
    output, errors = training.ended()
    assert output.count("stopped and saved at step") == 1
    assert errors_in(errors) == []
    assert exit_codes(errors) == dict.fromkeys((0, 1), 128 + number)
    saved_runs.verify(last(training.run_dir))


MISTAKES = [
    (
        ["batch_size=5"],
        "train.batch_size: 5 rows can't be shared among 2 processes; a mult",
        CONFIG,
    ),
    (["max_step=5"], "command line: max_step: unknown setting; did you mean", CONFIG),
    (["learning_rate=1e30", "grad_clip=None"], "step 2: the loss is", NON_FINITE),
    (["run_dir=alone"], "alone: already holds a run", CONFIG),
]


@pytest.mark.parametrize(("words", "message", "exit_code"), MISTAKES)
def test_a_mistake_is_told_once(home, text_file, words, message, exit_code):
    done = run(torchrun(*settings(text_file, "run_dir=mistaken", *words)), home)
    (line,) = errors_in(done.stderr)
    assert line.startswith(f"error: {message}")
    assert done.stderr.startswith(line)
    assert exit_code in exit_codes(done.stderr).values()
    assert OURS not in done.stderr
    assert not (home / "mistaken" / "checkpoints").exists()
