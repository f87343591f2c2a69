"""Measures minigpt against itself and others: python scripts/benchmark.py QUESTION [--quick]

One subcommand for each question; `scripts/benchmarks/` has a file for each. Everything that is
compared runs in turns, so that a busy machine slows all of it alike; read the ratios before the
milliseconds. `report` makes BENCHMARKS.md of what --json wrote.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.attention import attention
from benchmarks.explorer import explorer
from benchmarks.generate import generate
from benchmarks.inspect import inspect
from benchmarks.report import report
from benchmarks.save import save
from benchmarks.speedrun import speedrun
from benchmarks.startup import startup
from benchmarks.tokenize import tokenize
from benchmarks.train import train

from minigpt.errors import run_command
from minigpt.options import Parser
from minigpt.storage import write_json

Question = Callable[[argparse.Namespace], dict[str, Any]]
QUESTIONS: dict[str, Question] = {
    "attention": attention,
    "train": train,
    "generate": generate,
    "inspect": inspect,
    "startup": startup,
    "speedrun": speedrun,
    "tokenize": tokenize,
    "explorer": explorer,
    "save": save,
    "report": report,
}
MOST_THREADS = 1024  # as in minigpt/config.py
PEERS = {"train", "generate", "speedrun"}  # questions that others are asked, too


def main(arguments: list[str]) -> None:
    options = command_line().parse_args(arguments)
    results = QUESTIONS[options.question](options)
    if options.question != "report" and options.json:
        write_json(options.json, {"question": options.question, **results})
        print(f"made {options.json}")


def command_line() -> argparse.ArgumentParser:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    questions = parser.add_subparsers(dest="question", required=True, metavar="QUESTION")
    for name, function in QUESTIONS.items():
        question = questions.add_parser(name, help=function.__doc__, description=function.__doc__)
        add = question.add_argument
        if name == "report":
            add("files", type=Path, nargs="+", metavar="FILE", help="what --json wrote")
            add("--out", type=Path, default=Path("BENCHMARKS.md"), metavar="FILE")
            continue
        add("--quick", action="store_true", help="a few sizes, in a few seconds")
        add("--threads", type=few, default=1, metavar="N", help="default: 1, the steadiest")
        if name == "explorer":
            add("--page", type=Path, metavar="FILE", help="default: that of the newest run")
        if name == "tokenize":
            add("--megabytes", type=positive, default=256, metavar="N", help="default: 256")
        if name in PEERS:
            add("--nanogpt", type=Path, metavar="FOLDER", help="a checkout of nanoGPT to compare")
        if name in ("train", "generate"):
            add("--seconds", type=positive, default=20, metavar="N", help="a size; default: 20")
        if name == "speedrun":
            text = Path("data/tinyshakespeare.txt")
            add("--text", type=Path, default=text, metavar="FILE", help=f"default: {text}")
        add("--json", type=Path, metavar="FILE", help="write all numbers here")
    return parser


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def few(text: str) -> int:
    if (number := positive(text)) > MOST_THREADS:
        raise argparse.ArgumentTypeError(f"{text} are more than {MOST_THREADS}")
    return number


if __name__ == "__main__":
    run_command(main)
