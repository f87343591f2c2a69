"""The command line of scripts/generate.py: what to load, how to draw, where the prompt comes from.

arguments -> options -> config, prompt
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from minigpt.errors import DATA, UserError

if TYPE_CHECKING:
    from minigpt.config import Config

SETTINGS = {
    "num_samples": "how many texts to write",
    "max_new_tokens": "how many tokens each may get",
    "temperature": "0: always the likeliest token; 1: as learned; above: more daring",
    "top_k": "draw only among this many of the likeliest tokens",
    "top_p": "draw only among the likeliest that together have this probability",
    "min_p": "drop tokens less than this times as probable as the likeliest",
    "repetition_penalty": "above 1: avoid tokens that the text has already",
}
EPILOG = """Without an option, the run's own setting counts; None switches one off: --top-k=None.
Write --prompt=-5 where a text begins with a hyphen."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"command line: {message}; see --help")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options by name; numbers stay text, for `read_config` to read."""
    parser = Parser(description="Lets a trained model write.", epilog=EPILOG)
    add = parser.add_argument
    add("run", nargs="?", metavar="RUN", help="run directory; without it the newest in runs/")
    begin = parser.add_mutually_exclusive_group()
    prompt = "how the text begins: the text itself, a file, or standard input"
    begin.add_argument("--prompt", metavar="TEXT|FILE:path|-", help=prompt)
    ask = "ask for one prompt after the other; an empty line ends"
    begin.add_argument("--interactive", action="store_true", help=ask)
    for name, description in SETTINGS.items():
        add(f"--{hyphened(name)}", metavar="NUMBER", help=description)
    add("--stop", action="append", metavar="TEXT", help="end before this text; may be repeated")
    add("--seed", metavar="NUMBER", help="the same seed gives the same texts")
    switch = argparse.BooleanOptionalAction
    add("--stream", action=switch, help="show while writing; default for one text on a terminal")
    add("--checkpoint", default="best", metavar="best|last|STEP", help="default: best")
    add("--device", default="auto", help="auto, cpu, cuda, cuda:1 or mps; default: auto")
    return parser.parse_args([hyphened(argument) for argument in arguments])


def hyphened(argument: str) -> str:
    """The name of an option with hyphens: `--top_k=5` -> `--top-k=5`; texts stay as they are."""
    name, equals, value = argument.partition("=")
    is_text = argument.startswith("-") and not argument.startswith("--")
    return argument if is_text else name.replace("_", "-") + equals + value


def read_config(options: argparse.Namespace, path: Path | None = None) -> "Config":
    """A run's config, changed by the options; without a path only the options are checked."""
    from minigpt.command_line import load_config  # not needed for --help, which so stays quick

    given = {f"sample.{name}": getattr(options, name) for name in SETTINGS} | {"seed": options.seed}
    config = load_config(path, [f"{k}={v}" for k, v in given.items() if v is not None])
    if options.stop is None:
        return config
    sampling = config.sample.model_copy(update={"stop": options.stop})
    return config.model_copy(update={"sample": sampling})


def read_prompt(option: str) -> str:
    """The text itself, or what `FILE:path` or `-` holds, without the line break at its end."""
    if option != "-" and not option.startswith("FILE:"):
        return option
    name = "standard input" if option == "-" else option.removeprefix("FILE:")
    try:
        data = sys.stdin.buffer.read() if option == "-" else Path(name).read_bytes()
        return data.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
    except OSError as error:
        reason = f"{name}: {error.strerror}; give a text file, or the text itself"
        raise UserError(f"--prompt: {reason}", DATA) from None
    except UnicodeDecodeError as error:
        reason = f"{name}: byte {error.start} is not UTF-8; save the text as UTF-8"
        raise UserError(f"--prompt: {reason}", DATA) from None
