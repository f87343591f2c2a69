"""Texts on a console: piece by piece, one after the other, or in answer to prompts.

pieces of text -> standard output
"""

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterable

from minigpt.errors import UserError

DIVIDER = "---------------"


def show(prompt: str, pieces: Iterable[str]) -> None:
    """Prints a text piece by piece; a prompt that can't be read fails before it is printed."""
    pieces = iter(pieces)
    first = next(pieces, "")
    for piece in itertools.chain([prompt + first], pieces):
        print(piece, end="", flush=True)
    print()


def show_all(prompt: str, texts: Iterable[Iterable[str]]) -> None:
    for number, pieces in enumerate(texts):
        if number:
            print(DIVIDER)
        show(prompt, pieces)


def converse(write: Callable[[str, int], Iterable[str]]) -> None:
    """Shows `write(prompt, turn)` for each line, until an empty line or the end of the input."""
    with contextlib.suppress(EOFError):
        for turn in itertools.count():
            prompt = input("> " if sys.stdin.isatty() else "")
            if not prompt:
                return
            try:
                show(prompt, write(prompt, turn))
            except UserError as error:
                print(f"error: {error}", file=sys.stderr)
