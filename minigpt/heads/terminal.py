"""Attention as a shaded matrix in the terminal: each row is a token that looks at the columns.

In 256 colours where the terminal has them, else in shade blocks, else in digits.

weights (T, T), labels -> lines of text
"""

import os
import unicodedata
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from torch import Tensor

LONGEST_LABEL = 10
PLAIN = {"·": "_", "⏎": "\\n", "⇥": "\\t", "␍": "\\r", "…": "~", "–": "-", "×": "x"}
RESET = "\x1b[0m"

# ------------------------------------------------------------------------------ three styles


@dataclass(frozen=True)
class Style:
    """How weights look: `cells` has one mark for each step of `limits`, one more than those."""

    limits: tuple[float, ...]
    cells: tuple[str, ...]
    legend: str

    def cell(self, weight: float, width: int) -> str:
        mark = self.cells[bisect(self.limits, weight)]
        if mark in SINGLE:
            return mark.ljust(width)
        return mark * width if len(mark) == 1 else mark + " " * width + RESET


SINGLE = "·.123456789"
BLOCKS = "·░▒▓█"
COLOURS = [f"\x1b[48;5;{colour}m" for colour in (17, 60, 102, 144, 186, 227)]  # blue to yellow
STYLES = {
    "colour": Style(
        (0.05, 0.15, 0.3, 0.5, 0.75),
        tuple(COLOURS),
        "".join(f"{colour}  " for colour in COLOURS)
        + f"{RESET}  less than 0.05, from 0.05, 0.15, 0.3, 0.5, 0.75",
    ),
    "blocks": Style(
        (0.05, 0.2, 0.4, 0.7),
        tuple(BLOCKS),
        "· less than 0.05  ░ from 0.05  ▒ from 0.2  ▓ from 0.4  █ from 0.7",
    ),
    "digits": Style(
        tuple(tenths / 10 - 0.05 for tenths in range(1, 10)),
        (".", *"123456789"),
        "in tenths: . less than 0.05, 1 from 0.05, 2 from 0.15, ... 9 from 0.85",
    ),
}


def choose_style(stream: TextIO, environment: Mapping[str, str] = os.environ) -> str:
    """The richest style that `stream` can show; NO_COLOR is respected."""
    terminal = environment.get("TERM", "") + environment.get("COLORTERM", "")
    colours = any(word in terminal for word in ("256color", "truecolor", "24bit", "kitty"))
    if colours and stream.isatty() and not environment.get("NO_COLOR"):
        return "colour"
    return "blocks" if printable(BLOCKS, stream) == BLOCKS else "digits"


def printable(text: str, stream: TextIO) -> str:
    """The text with what `stream` can't show replaced by what it can."""
    encoding = stream.encoding or "ascii"
    try:
        text.encode(encoding)
        return text
    except UnicodeEncodeError:
        text = "".join(PLAIN.get(character, character) for character in text)
        return text.encode(encoding, "backslashreplace").decode(encoding)


# ------------------------------------------------------------------------------ the matrix


def shaded_matrix(
    weights: Tensor, labels: Sequence[str], style: str, width: int, most: int
) -> list[str]:
    """Lines of at most `width` columns with a legend; of a long text only the first tokens.

    Those are as many as fit, at most `most`. The future is left empty: no token looks there.
    """
    shown = [shortened(label) for label in labels[:most]]
    margin = 5 + max(map(columns, shown))
    shown = shown[: max(width - margin, 1)]
    cell_width = 2 if 2 * len(shown) <= width - margin else 1
    lines = [" " * margin + line for line in upright(shown, cell_width)]
    for query, (label, row) in enumerate(zip(shown, weights.tolist(), strict=False)):
        cells = (STYLES[style].cell(weight, cell_width) for weight in row[: query + 1])
        lines.append(f"{query:3} {padded(label, margin - 4)}{''.join(cells)}".rstrip(" "))
    lines += ["", STYLES[style].legend]
    if len(shown) < len(labels):
        lines.append(f"the first {len(shown)} of {len(labels)} tokens; the picture has all")
    return lines


def upright(labels: Sequence[str], cell_width: int) -> list[str]:
    """Labels written from top to bottom, to stand over columns and end at the same line."""
    height = max(map(len, labels))
    letters = [label.rjust(height) for label in labels]
    narrow = [[c if columns(c) <= cell_width else "□" for c in letter] for letter in letters]
    return ["".join(padded(c, cell_width) for c in line) for line in zip(*narrow, strict=True)]


def shortened(label: str, longest: int = LONGEST_LABEL) -> str:
    return label if len(label) <= longest else label[: longest - 1] + "…"


def columns(text: str) -> int:
    """How many columns a terminal takes to show a text."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def padded(text: str, width: int) -> str:
    return text + " " * (width - columns(text))
