"""From the start of a process to a validation loss on tiny Shakespeare, ours and nanoGPT's."""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measuring import describe, machine
from minigpt.errors import DATA, UserError

ROOT = Path(__file__).parents[2]
RECIPE = "device=cpu compile=False eval_iters=20 log_interval=1 block_size=64 batch_size=12"
RECIPE += " n_layer=4 n_head=4 n_embd=128 max_iters=2000 lr_decay_iters=2000 dropout=0.0"
RUN = ["run_dir={}/run", "device=cpu"]


def speedrun(options: argparse.Namespace) -> dict[str, Any]:
    """seconds to the validation loss that nanoGPT's recipe for a CPU ends at"""
    import torch

    torch.set_num_threads(options.threads)
    require_file(options.text, "prepare_data.py shakespeare makes it")
    commands = {"ours": (our_command(options.text.resolve()), ROOT)}
    if options.nanogpt is not None:
        data = options.nanogpt / "data" / "shakespeare_char"
        require_file(
            data / "train.bin", f"name a checkout of nanoGPT; {data / 'prepare.py'} makes it"
        )
        commands["nanoGPT"] = (their_command(), options.nanogpt)
    print(describe(machine()) + "\n")
    ends: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(1 if options.quick else 3):
        for name, (command, home) in commands.items():
            ends[name].append(end_of(command, home, options.threads))
            print("{:8} {:6.2f} s, validation loss {:.4f}".format(name, *ends[name][-1]))
    seconds = {name: statistics.median(s for s, _ in found) for name, found in ends.items()}
    losses = {name: statistics.median(loss for _, loss in found) for name, found in ends.items()}
    if "nanoGPT" in seconds:
        print(f"ours takes 1/{seconds['nanoGPT'] / seconds['ours']:.1f} of the time")
    return {"machine": machine(), "seconds": seconds, "losses": losses}


def our_command(text: Path) -> list[str]:
    config = ROOT / "configs" / "shakespeare_speedrun.yaml"
    return [str(ROOT / "scripts" / "train.py"), str(config), f"data.path={text}", *RUN]


def their_command() -> list[str]:
    words = [f"--{word}" for word in RECIPE.split()]
    return ["train.py", "config/train_shakespeare_char.py", "--out_dir={}", *words]


def require_file(path: Path, advice: str) -> None:
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; {advice}", DATA)


def end_of(command: list[str], home: Path, threads: int) -> tuple[float, float]:
    """When a training tells its last validation loss, in seconds, and that loss.

    `{}` in the command stands for a folder to write to.
    """
    found: tuple[float, float] | None = None
    surroundings = os.environ | {"OMP_NUM_THREADS": str(threads)}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": errors}
        words = [sys.executable, "-u", *(word.replace("{}", folder) for word in command)]
        started = time.perf_counter()
        with subprocess.Popen(words, cwd=home, env=surroundings, text=True, **pipes) as training:
            assert training.stdout is not None
            try:
                for line in training.stdout:
                    if told := re.match(r"step \d+: .*val loss ([\d.]+)", line):
                        found = time.perf_counter() - started, float(told[1])
            except BaseException:
                training.kill()  # before its folder goes
                raise
        if training.returncode or found is None:
            errors.seek(0)
            why = (errors.read().strip().splitlines() or ["it told no validation loss"])[-1]
            raise UserError(
                f"{home}: {Path(command[0]).name} failed: {why.removeprefix('error: ')}", DATA
            )
    return found
