"""The command line of scripts/inspect_heads.py: which run, which text, which head.

arguments -> options, text
"""

import argparse
import difflib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
HEAD = re.compile(r"L(\d{1,4})H(\d{1,4})", re.ASCII | re.IGNORECASE)
READS = {  # beside itself; what else is given would be left unread
    "compare": {"fast"},
    "prune": {"run", "checkpoint", "out", "fast"},
    "relation": {"run", "checkpoint", "fast"},
}


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
    add("run", nargs="?", metavar="RUN", help="run directory, or RUN@STEP; default: the newest run")
    text = "look at this text: itself, a file, or standard input; default: texts of the run's own"
    add("--text", metavar="TEXT|FILE:path|-", help=text)
    add("--head", metavar="L2H1", help="the head to show; default: the most interesting one")
    add("--checkpoint", metavar="best|last|STEP", help="default: best")
    add("--out", metavar="DIR", help="where the pictures go; default: RUN/heads")
    add("--csv", metavar="FILE", help="where the scores go; default: scores.csv in DIR")
    add("--fast", action="store_true", help="fewer stories, no pictures of what only illustrates")
    add("--relation", metavar="NAME", help="all about one relation, such as agreement")
    compare = "heads of two runs (or RUN@STEP) side by side, matched by what they do"
    add("--compare", nargs=2, metavar=("RUN_A", "RUN_B"), help=compare)
    prune = "write a smaller run, to --out, without these heads (L0H1,L2H3) or this role (broad)"
    add("--prune", metavar="ROLE|HEADS", help=prune)
    add("--json", action="store_true", help="print all scores as JSON and nothing else")
    return understood(parser.parse_args(arguments))


def understood(options: argparse.Namespace) -> argparse.Namespace:
    """The options with their texts read; raises UserError."""
    refuse_unread(options)
    readers: dict[str, Callable[[str], Any]] = {
        "text": read_text,
        "head": read_head,
        "out": read_folder,
        "csv": read_csv_file,
        "relation": relation_named,
        "prune": read_heads_or_role,
    }
    for name, read in readers.items():
        value = getattr(options, name)
        setattr(options, name, None if value is None else read(value))
    options.compare = [find_run(name) for name in options.compare or ()]
    if not options.compare:
        options.run = find_run(options.run, options.checkpoint)
    return options


def refuse_unread(options: argparse.Namespace) -> None:
    """Raises UserError for an option that what is asked for does not read."""
    given = [name for name, value in vars(options).items() if value not in (None, False)]
    asked = next((name for name in READS if name in given), None)
    for name in given:
        if asked and name != asked and name not in READS[asked]:
            other = "RUN" if name == "run" else f"--{name}"
            raise UserError(f"--{asked}: does not go with {other}; leave one of them out", CONFIG)


def read_folder(name: str) -> Path:
    if not name:
        raise UserError("--out: empty; give a folder, or leave it out", CONFIG)
    return Path(os.path.expanduser(name))  # shells leave the ~ of --out=~/a as it is


def read_csv_file(name: str) -> Path:
    """A file for the scores; none that could be the run's own, or the one of the relations."""
    path = Path(os.path.expanduser(name))
    if path.suffix.lower() != ".csv" or path.name == "relations.csv":
        what = "needs a name of its own that ends with .csv"
        raise UserError(f"--csv: {name!r} {what}; give one such as scores.csv", CONFIG)
    return path


def read_head(name: str) -> tuple[int, int]:
    """`L2H1` -> (2, 1); raises UserError."""
    found = HEAD.fullmatch(name.strip())
    if not found:
        raise UserError(f"--head: {name!r} is no head; write layer and head as in L2H1", CONFIG)
    return int(found[1]), int(found[2])


def read_heads_or_role(wanted: str) -> list[tuple[int, int]] | str:
    """`L0H1,L2H3` -> [(0, 1), (2, 3)], each head once; what names no heads is taken for a role."""
    names = [name for name in re.split(r"[\s,]+", wanted) if name]
    if names and all(map(HEAD.fullmatch, names)):
        return list(dict.fromkeys(map(read_head, names)))
    return wanted.strip().lower()


def read_text(option: str) -> str:
    """The text itself, or what `FILE:path` or `-` holds; raises UserError."""
    try:
        return read_prompt(option)
    except UserError as error:
        message = str(error).replace("--prompt", "--text", 1)
        raise UserError(message, error.exit_code) from None


def find_run(name: str | None, checkpoint: str | None = None) -> tuple[Path, str]:
    """A run and which of its checkpoints: by its folder, or RUN@STEP; the newest without a name.

    Raises UserError where there is no such run or checkpoint.
    """
    folder, at, step = (name or "").rpartition("@")
    which = "best" if checkpoint is None else checkpoint
    if name is None:
        found = newest_run(), which
    elif not at or os.path.lexists(name):
        found = Path(name), which
    elif checkpoint is None:
        found = Path(folder), step
    else:
        what = f"--checkpoint: {name} names one already"
        raise UserError(f"{what}; give {folder} with --checkpoint, or {name} alone", CONFIG)
    find_checkpoint(*found)
    return found


def name_of(run_dir: Path, checkpoint: str) -> str:
    """What `find_run` finds this checkpoint by."""
    return str(run_dir) if checkpoint == "best" else f"{run_dir}@{checkpoint}"


def relation_named(wanted: str) -> str:
    """The relation that `agreement`, `pronoun-name` or `names from pronouns` means.

    Raises UserError.
    """
    simple = {simplified(name): name for name in RELATIONS}
    known = {simplified(relation.words): name for name, relation in RELATIONS.items()} | simple
    plain = simplified(wanted)
    found = [key for key in simple if plain and plain in key]
    if plain in known or len(found) == 1:
        return known[plain if plain in known else found[0]]
    hint = f"may be {' or '.join(found)}" if found else "is none"
    if not found and (near := difflib.get_close_matches(plain, known, n=1)):
        hint += f", did you mean {near[0]}?"
    raise UserError(f"--relation: {wanted!r} {hint}; there are: {', '.join(simple)}", CONFIG)


def simplified(name: str) -> str:
    return re.sub(r"[^a-z]+", "-", name.lower()).strip("-")
