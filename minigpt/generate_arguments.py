"""The command line of scripts/generate.py: what to load, how to draw, where the prompt comes from.

arguments -> options -> config, prompt
"""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from minigpt.errors import DATA, UserError
from minigpt.options import Parser

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
USAGE = "python scripts/generate.py [RUN] [--prompt TEXT] [options]"
EXAMPLES = """\
Where an option is not given, the run's own setting counts.

  python scripts/generate.py --prompt "Once upon a time" --temperature 0.7
  python scripts/generate.py runs/stories --num-samples 5 --top-p 0.9 --seed 2
  python scripts/generate.py --prompt FILE:start.txt --stop "The end" --top-k=None
  python scripts/generate.py --interactive
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options by name; numbers stay text, for `read_config` to read."""
    parser = Parser(
        usage=USAGE,
        description="Lets a trained model write.",
        epilog=EXAMPLES,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, 34, 100),
    )
    add = parser.add_argument
    add("run", nargs="?", metavar="RUN", help="run directory; without it the newest in runs/")
    begin = parser.add_mutually_exclusive_group()
    prompt = "how the text begins: the text itself, a file, or standard input"
    begin.add_argument("--prompt", metavar="TEXT|FILE:path|-", help=prompt)
    ask = "ask for one prompt after the other; an empty line ends"
    begin.add_argument("--interactive", action="store_true", help=ask)
    for name, description in SETTINGS.items():
        add(hyphened(f"--{name}"), metavar="NUMBER", help=description)
    add("--stop", action="append", metavar="TEXT", help="end before this text; may be given twice")
    add("--seed", metavar="NUMBER", help="the same seed gives the same texts")
    switch = argparse.BooleanOptionalAction
    add("--stream", action=switch, help="show while writing; default for one text on a terminal")
    add("--checkpoint", default="best", metavar="best|last|STEP", help="default: best")
    add("--device", default="auto", help="auto, cpu, cuda, cuda:1 or mps; default: auto")
    return parser.parse_args([hyphened(argument) for argument in arguments])


def hyphened(argument: str) -> str:
    """`--top_k=a_b` -> `--top-k=a_b`; what is no option stays as it is."""
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else argument


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
        data = standard_input() if option == "-" else Path(os.path.expanduser(name)).read_bytes()
        return data.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
    except OSError as error:
        reason = f"{name or option}: {error.strerror}; give a text file, or the text itself"
        raise UserError(f"--prompt: {reason}", DATA) from None
    except UnicodeDecodeError as error:
        reason = f"{name}: byte {error.start} is not UTF-8; save the text as UTF-8"
        raise UserError(f"--prompt: {reason}", DATA) from None


def standard_input() -> bytes:
    with open(0, "rb", closefd=False) as file:
        return file.read()
