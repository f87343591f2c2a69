"""The command line of scripts/inspect_heads.py: which run, which text, which head.

arguments -> options, text
"""

import argparse
import re
from pathlib import Path

from minigpt.errors import CONFIG, UserError
from minigpt.generate_arguments import read_prompt
from minigpt.heads.relations import RELATIONS
from minigpt.options import Parser
from minigpt.saved_runs import find_checkpoint, newest_run

USAGE = "python scripts/inspect_heads.py [RUN] [--text TEXT] [--head L2H1] [options]"
EXAMPLES = """\
Heads are named by layer and place: L0H3 is the fourth head of the first layer.

  python scripts/inspect_heads.py
  python scripts/inspect_heads.py runs/stories-1 --head L1H0
  python scripts/inspect_heads.py --text "One day Lily Reed met Tom Fox. She says"
  python scripts/inspect_heads.py --text FILE:poem.txt --out pictures
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options by name, `head` as a pair of numbers or None."""
    parser = Parser(
        usage=USAGE,
        description="Shows what the attention heads of a trained model look at.",
        epilog=EXAMPLES,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=34, width=100
        ),
    )
    add = parser.add_argument
    add("run", nargs="?", metavar="RUN", help="run directory; without it the newest in runs/")
    text = "look at this text: itself, a file, or standard input; default: texts of the run's own"
    add("--text", metavar="TEXT|FILE:path|-", help=text)
    add("--head", metavar="L2H1", help="the head to show; default: the most interesting one")
    add("--checkpoint", default="best", metavar="best|last|STEP", help="default: best")
    add("--out", metavar="DIR", help="where the pictures go; default: RUN/heads")
    add("--csv", metavar="FILE", help="where the scores go; default: scores.csv in DIR")
    add("--fast", action="store_true", help="fewer stories, no pictures of what only illustrates")
    add("--relation", metavar="NAME", help="all about one relation, such as agreement")
    compare = "heads of two runs (or RUN@STEP) side by side, matched by what they do"
    add("--compare", nargs=2, metavar=("RUN_A", "RUN_B"), help=compare)
    prune = "write a smaller run, to --out, without these heads (L0H1,L2H3) or this role (broad)"
    add("--prune", metavar="ROLE|HEADS", help=prune)
    add("--json", action="store_true", help="print all scores as JSON and nothing else")
    options = parser.parse_args(arguments)
    options.text = read_text(options.text) if options.text is not None else None
    options.relation = relation_named(options.relation) if options.relation is not None else None
    options.compare = [find_run(name) for name in options.compare or ()]
    if not options.compare:
        options.run = find_run(options.run, options.checkpoint)
    options.head = read_head(options.head) if options.head is not None else None
    return options


def read_head(name: str) -> tuple[int, int]:
    """`L2H1` -> (2, 1); raises UserError."""
    found = re.fullmatch(r"[lL](\d{1,4})[hH](\d{1,4})", name.strip(), re.ASCII)
    if not found:
        raise UserError(f"--head: {name!r} is no head; write layer and head as in L2H1", CONFIG)
    return int(found[1]), int(found[2])


def read_text(option: str) -> str:
    """The text itself, or what `FILE:path` or `-` holds; raises UserError."""
    try:
        return read_prompt(option)
    except UserError as error:
        message = str(error).replace("--prompt", "--text", 1)
        raise UserError(message, error.exit_code) from None


def find_run(name: str | None, checkpoint: str = "best") -> tuple[Path, str]:
    """A run and which of its checkpoints: by its folder, or RUN@STEP; the newest without a name.

    Raises UserError where there is no such run or checkpoint.
    """
    folder, at, step = (name or "").rpartition("@")
    if name is None:
        found = newest_run(), checkpoint
    elif at and not Path(name).exists():
        found = Path(folder), step
    else:
        found = Path(name), checkpoint
    find_checkpoint(*found)
    return found


def relation_named(wanted: str) -> str:
    """The relation that `agreement` or `pronoun-name` means; raises UserError."""
    simple = {re.sub(r"[^a-z]+", "-", name.lower()): name for name in RELATIONS}
    plain = re.sub(r"[^a-z]+", "-", wanted.lower())
    found = [name for key, name in simple.items() if plain in key]
    if plain in simple or len(found) == 1:
        return simple.get(plain) or found[0]
    what = f"{wanted!r} may be any of {', '.join(found)}" if found else f"{wanted!r} is none"
    raise UserError(f"--relation: {what}; there are: {', '.join(simple)}", CONFIG)
