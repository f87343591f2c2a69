"""How long a command takes to begin."""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measuring import describe, machine

TRAIN = Path(__file__).parents[1] / "train.py"


def startup(options: argparse.Namespace) -> dict[str, Any]:
    """from the start of the process to the first training step, and what importing torch takes"""
    print(describe(machine()) + "\n")
    python, train = sys.executable, str(TRAIN)
    with tempfile.TemporaryDirectory() as folder:
        first_step(Path(folder))  # makes the corpus, which is kept
        waits: dict[str, Callable[[], object]] = {
            "import torch": lambda: subprocess.run([python, "-c", "import torch"], check=True),
            "--help": lambda: subprocess.run([python, train, "--help"], stdout=subprocess.DEVNULL),
            "first training step": lambda: first_step(Path(folder)),
        }
        turns = range(1 if options.quick else 5)
        times = [{name: milliseconds_of(wait) for name, wait in waits.items()} for _ in turns]
    found = {name: statistics.median(turn[name] for turn in times) for name in waits}
    print("\n".join(f"{name:20} {value / 1000:6.2f} s" for name, value in found.items()))
    return {"machine": machine(), "milliseconds": found}


def milliseconds_of(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - started)


def first_step(folder: Path) -> None:
    """Runs a default training in `folder` until it tells of its first step."""
    command = [sys.executable, str(TRAIN), "log_interval=1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=folder, text=True) as training:
        assert training.stdout is not None
        while not training.stdout.readline().startswith("iter 1:"):
            assert training.poll() is None, "the training ended before its first step"
        training.kill()
