"""RELIABILITY.md, from what the tests themselves counted.

pytest's run of this folder -> tables in Markdown
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from minigpt import storage
from minigpt.options import Parser

REPOSITORY = Path(__file__).parents[2]
TESTS = ["reliability", "test_distributed.py", "test_explorer_payloads.py", "test_interop.py"]
PROMISES = {
    "A1": (
        "a power cut at any instant goes back to a whole step",
        "every move of a run on disk is written down; after each, disks that a cut could leave: "
        "names missing, files empty, torn or zeros; each disk counts once",
    ),
    "A2": (
        "killed again and again, it ends byte for byte the same; each step is logged once",
        "kill -9 of real processes, half at random times, half inside saves",
    ),
    "A3": (
        "a failing write leaves the last good checkpoint, no strays, one line",
        "each move of a save fails once, with each of five errors",
    ),
    "A4": (
        "any damage to a checkpoint is seen",
        "bits flipped, files cut, blocks swapped or zeroed, bytes added",
    ),
    "A5": (
        "it goes on from the last good checkpoint, and removes nothing where none is",
        "three checkpoints, six kinds of damage",
    ),
    "B1": (
        "resumed is uninterrupted, bit for bit",
        "accumulation × dropout × optimiser × clipping × moment of the stop",
    ),
    "B2": (
        "two processes, either one killed, end as if nothing had happened",
        "torchrun, gloo on the CPU, kill -9 (`tests/test_distributed.py`)",
    ),
    "B3": ("who looks on changes nothing", "how often it evaluates, saves, logs and samples"),
    "C": (
        "Ctrl-C and kill at any moment: saved, the right exit code, no hang",
        "real signals in each phase, and at random moments",
    ),
    "D": (
        "a number that is none stops it before the update and before a save, and is named",
        "12 places × NaN, ∞, −∞",
    ),
    "E": (
        "no room on disk or in memory is one line with need, have and where",
        "RLIMIT_FSIZE, RLIMIT_AS",
    ),
    "F": (
        "hostile files are refused, and nothing in them runs",
        "pickles, zips, headers, manifests, settings, tokenizers, pipes",
    ),
    "G": (
        "texts, names and tokens are text in the explorer's page, no more",
        "payloads × places, then a real browser (`tests/test_explorer_payloads.py`)",
    ),
    "H": (
        "a wrong setting is one line with file, line, key and what is allowed; no run is made",
        "typos, types, ranges, duplicates, YAML's traps, command lines",
    ),
    "I": ("one trainer a run; readers see whole checkpoints", "races of real processes"),
    "J": ("the same settings are the same bytes", "hash seed, folder, locale, time zone, umask"),
    "K": ("a text comes back exactly or is refused in one line", "dirty texts × tokenizers"),
    "L": ("no leak of memory, files or disk", "steps in one process"),
    "M": ("whatever a run lives through, it ends the same", "hypothesis's state machine"),
    "N": (
        "GPT-2 comes in and goes out as the same function; broken weights are refused in one line",
        "tiny random models, and sets of weights with each mistake (`tests/test_interop.py`)",
    ),
    "O": ("the tests have teeth", "faults put into a copy of minigpt, each of which must be seen"),
}
HEAD = """# Reliability

Made by `python scripts/reliability.py` from the counts of the tests themselves, most of them in
`tests/reliability/`; no number is typed by hand. {failed}

{machine}.

| | promise | how it is tested | cases | seconds |
|---|---|---|---|---|
"""
CONTROL = """
## Beside what anyone has

The same kinds of cases against `tests/reliability/control.py`, a plain training loop with
`torch.save` and `torch.load`: in how many it kept the promise. Each promise above held in all.

| | cases | held |
|---|---|---|
"""
LIMITS = """
## What is not promised

Equal bytes with another version of PyTorch, another number of threads, or on a GPU; three or more
processes; network file systems, whose locks and flushes are their own; anything against somebody
who may write to the run's folder and makes digests that fit.

The ordinary test run takes the short form. `--quick` counts that alone; without it the long form
is counted too: more kills, signals, flips and life stories, and all faults of O but the three
that every test run tries.
"""


def report(arguments: list[str]) -> int:
    parser = Parser(prog="scripts/reliability.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the short form only")
    parser.add_argument("--out", type=Path, default=Path("RELIABILITY.md"), metavar="FILE")
    options = parser.parse_args(arguments)
    found, seconds, code = counts(options)
    storage.write_text(options.out, "".join(written(found, seconds, code)))
    print(f"made {options.out}")
    return code


def counts(options: argparse.Namespace) -> tuple[list[list], float, int]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "counts.json")
        tests = [REPOSITORY / "tests" / name for name in TESTS]
        marks = "not nightly" if options.quick else "nightly or not nightly"
        command = [sys.executable, "-m", "pytest", "-m", marks, *map(str, tests)]
        started = time.monotonic()
        environment = os.environ | {"MINIGPT_COUNTS": str(path)}
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, check=False)
        found = json.loads(path.read_text(encoding="utf-8"))
        return found, time.monotonic() - started, done.returncode


def written(found: list[list], seconds: float, code: int):
    cases, times = defaultdict(int), defaultdict(float)
    for promise, outcome, how_many, duration in found:
        cases[promise] += how_many if outcome == "passed" else 0
        times[promise] += duration
    failed = "All of them passed." if code == 0 else "SOME OF THEM FAILED: see the tests."
    yield HEAD.format(failed=failed, machine=machine(seconds))
    for name, (promise, how) in PROMISES.items():
        yield f"| {name} | {promise} | {how} | {cases[name]:,} | {times[name]:.0f} |\n"
    names = [name for name in PROMISES if f"control {name}" in cases]
    if names:
        yield CONTROL
    for name in names:
        held = cases[f"control {name} held"]
        yield f"| {name}: {PROMISES[name][0]} | {cases[f'control {name}']:,} | {held:,} |\n"
    yield LIMITS


def machine(seconds: float) -> str:
    import torch

    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.split(": ", 1)[1] for line in lines if line.startswith("model name")]
    versions = f"torch {torch.__version__}, Python {platform.python_version()}"
    return f"{names[0]}, {os.cpu_count()} cores, {versions}; {seconds / 60:.0f} minutes in all"
