"""Several processes train as one does: the same losses, one voice, whole checkpoints, no hang.

Real processes, started by torchrun as people start them, on this machine's processors.
"""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from conftest import REPOSITORY, TINY
from safetensors.torch import load_file

from minigpt import distributed, saved_runs
from minigpt.command_line import load_config
from minigpt.data import Split
from minigpt.errors import CONFIG, LOCKED, NON_FINITE, RESOURCES
from minigpt.text import open_text
from minigpt.trainer import train

FILES = ("model.safetensors", "optimizer.safetensors", "state.json")
STEPS = 50
TRAINER = str(REPOSITORY / "scripts" / "train.py")


def torchrun(*words, number=2, script=TRAINER):
    options = ["--standalone", f"--nproc-per-node={number}"]
    return [sys.executable, "-m", "torch.distributed.run", *options, str(script), *map(str, words)]


def run(command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, encoding="utf-8", timeout=120)


def settings(text_file, *overrides):
    return [f"data.path={text_file}", *TINY, f"max_steps={STEPS}", "eval_interval=10", *overrides]


def train_here(text_file, run_dir, *overrides, resume=False):
    config = load_config(None, settings(text_file, *overrides))
    return train(config, open_text(config), run_dir, resume)


def last(run_dir):
    return saved_runs.find_checkpoint(run_dir, "last")


def require_same_end(first, second):
    for name in FILES:
        assert (last(first) / name).read_bytes() == (last(second) / name).read_bytes(), name


def records(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def require_same_losses(first, second, tolerance=1e-6):
    found = []
    for run_dir in (first, second):
        rows = records(run_dir)
        assert [r["step"] for r in rows if "train_loss" in r] == list(range(1, STEPS + 1))
        found.append([r.get("train_loss", r.get("val_loss")) for r in rows])
    np.testing.assert_allclose(*found, rtol=0, atol=tolerance)


# ------------------------------------------------------------------------------ the same training

MANY = """
import json, signal, sys
from pathlib import Path

from minigpt import distributed
from minigpt.command_line import load_config
from minigpt.text import open_text
from minigpt.trainer import Trainer, train

plain_step = Trainer.train_step


def step_then_signal(self):
    plain_step(self)
    if distributed.rank() == 1 and self.state.step == stop_at:
        signal.raise_signal(signal.SIGINT)


Trainer.train_step = step_then_signal
with distributed.joined(load_config(None, ["device=cpu"])):
    for name, overrides, stop_at, resume in json.loads(sys.argv[1]):
        config = load_config(None, overrides)
        corpus = distributed.in_turn(lambda: open_text(config))
        code = train(config, corpus, Path(name), resume)
        print("ended", name, code)
"""

EQUAL = {
    "one": [],
    "four": ["accumulate=4", "batch_size=2"],
    "averaged": ["ema=0.9", "optimizer=adamw", "tie_embeddings=no", "positions=learned"],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory, text_file):
    """A folder with runs by one process and by two, of which some were stopped in between."""
    home = tmp_path_factory.mktemp("together")
    cases = []
    for name, overrides in EQUAL.items():
        for shard in ("off", "on"):
            words = settings(text_file, *overrides, f"shard={shard}")
            cases.append((f"{name}-2-{shard}", words, 0, False))
    for shard in ("off", "on"):
        words = settings(text_file, "dropout=0.2", f"shard={shard}")
        cases.append((f"whole-{shard}", words, 0, False))
        cases.append((f"parts-{shard}", words, 33, False))
        cases.append((f"parts-{shard}", words, 0, True))
        cases.append((f"from-1-{shard}", settings(text_file, f"shard={shard}"), 0, True))
        cases.append((f"to-1-{shard}", settings(text_file, f"shard={shard}"), 33, False))
    cwd = os.getcwd()
    os.chdir(home)
    try:
        for name, overrides in EQUAL.items():
            train_here(text_file, home / f"{name}-1", *overrides)
        for shard in ("off", "on"):
            train_here(text_file, home / f"from-1-{shard}", "max_steps=20", "schedule=constant")
    finally:
        os.chdir(cwd)
    (home / "many.py").write_text(MANY)
    done = run(torchrun(json.dumps(cases), script="many.py"), home)
    assert done.returncode == 0, done.stderr
    (home / "out.txt").write_text(done.stdout)
    return home


@pytest.mark.parametrize("shard", ["off", "on"])
@pytest.mark.parametrize("name", EQUAL)
def test_two_processes_have_the_losses_of_one(home, name, shard):
    require_same_losses(home / f"{name}-1", home / f"{name}-2-{shard}")
    ends = [load_file(last(home / f"{name}-{way}") / FILES[0]) for way in ("1", f"2-{shard}")]
    assert ends[0].keys() == ends[1].keys()
    for weight in ends[0]:
        torch.testing.assert_close(ends[0][weight], ends[1][weight], rtol=0, atol=1e-4)
