"""How kinds of roles look in every picture: a colour, a letter and a pattern each.

The colours are those of Okabe & Ito (2008), which colour-blind readers can tell apart; the letter
says the same in black and white.

kind of a role -> marks and legends on a Sheet
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.patches import Rectangle

from minigpt.heads.judging import Judgement
from minigpt.heads.roles import Role
from minigpt.heads.sheet import INK, LINE, PALE, POINTS, Sheet, text_width

BLUE, SKY, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, VERMILION, PURPLE, GREY = "#E69F00", "#D55E00", "#CC79A7", "#D0D0D0"
EDGE_OF_MARKS, RULE = "#444444", "#E6E6E6"
SMALL = 8.5  # letters of what explains, in points
ROW, GAP = 0.25, 0.3  # inches from row to row of a legend, between its items
UNLABELLED = "unlabelled"


@dataclass(frozen=True)
class Kind:
    """`words` stand in legends; letters on `dark` colours are white."""

    letter: str
    colour: str
    pattern: str
    words: str
    dark: bool = False


KINDS = {  # most telling first
    "resolves": Kind("R", BLUE, "", "resolves a relation: looks there, and is needed", dark=True),
    "together": Kind("T", BLUE, "oo", "resolves a relation with other heads", dark=True),
    "induction": Kind("I", VERMILION, "//", "induction: what followed before", dark=True),
    "duplicate": Kind("D", PURPLE, "\\\\", "duplicate: the same word before"),
    "positional": Kind("P", GREEN, "||", "positional: a fixed distance back", dark=True),
    "mostly positional": Kind("p", SKY, "||", "mostly positional"),
    "needed": Kind("N", ORANGE, "..", "needed for a relation, but looks elsewhere"),
    "looks": Kind("L", YELLOW, "--", "looks at a relation, without effect"),
    "broad": Kind("B", "#FFFFFF", "xx", "broad: looks at everything"),
    "resting": Kind("Z", GREY, "++", "resting on the first word, without effect"),
    UNLABELLED: Kind("?", "#FFFFFF", "", "unlabelled: no rule fits"),
}


# ------------------------------------------------------------------------------ roles


def kind_of(role: Role) -> str:
    """The most telling of a head's labels."""
    return min((label.kind for label in role.labels), key=list(KINDS).index, default=UNLABELLED)


def kind_for(judgement: Judgement, relation: str, head: tuple[int, int]) -> str:
    """What a head is for one relation."""
    role = next(role for role in judgement.roles if (role.layer, role.head) == head)
    found = [label.kind for label in role.labels if label.relation == relation]
    return found[0] if found else UNLABELLED


# ------------------------------------------------------------------------------ drawing


def box(sheet: Sheet, x: float, y: float, width: float, height: float, **style: Any) -> None:
    """A rectangle with its upper left corner at (x, y), grey with a thin edge unless told."""
    plain: dict[str, Any] = {"facecolor": GREY, "edgecolor": EDGE_OF_MARKS, "linewidth": 0.6}
    sheet.axes.add_patch(Rectangle((x, y), width, height, **plain | style))


def line_height() -> float:
    """Inches from line to line of small letters."""
    return 1.1 * LINE * SMALL / POINTS


def mark(sheet: Sheet, kind: str, x: float, y: float, side: float) -> None:
    """The square of a kind around (x, y), its letter on a plain spot of the pattern."""
    look = KINDS[kind]
    face: dict[str, Any] = {"facecolor": look.colour, "hatch": look.pattern}
    face["linestyle"] = ":" if kind == UNLABELLED else "-"
    box(sheet, x - side / 2, y - side / 2, side, side, **face)
    size = min(max(0.5 * side * POINTS, 6.0), 18.0)
    spot = {"facecolor": look.colour, "edgecolor": "none", "boxstyle": "square,pad=0.12"}
    style = {"color": "white" if look.dark else INK, "weight": "bold", "bbox": spot}
    sheet.text(look.letter, x, y, size, ha="center", va="center_baseline", **style)


def symbol(sheet: Sheet, marker: str, x: float, y: float, size: float = 5.5) -> None:
    """A small white sign with a dark edge, to be seen on any colour."""
    style: dict[str, Any] = {
        "markerfacecolor": "white",
        "markeredgecolor": INK,
        "linestyle": "none",
    }
    sheet.axes.plot([x], [y], marker=marker, markersize=size, **style)


Draw = Callable[[Sheet, float, float], None]  # a sign around a place
Item = tuple[Draw, str]  # a sign and what it means


def kind_items(kinds: Iterable[str]) -> list[Item]:
    """Those of these kinds that there are, in the order of all."""
    present = set(kinds)
    return [(sign_of(kind), look.words) for kind, look in KINDS.items() if kind in present]


def sign_of(kind: str) -> Draw:
    return lambda sheet, x, y: mark(sheet, kind, x, y, 0.19)


def legend(sheet: Sheet, items: Sequence[Item], x: float, y: float, width: float) -> None:
    """Signs with their meanings, in as many rows as `legend_rows` says."""
    for (draw, words), (across, row) in zip(items, flow(items, width), strict=True):
        middle = y + (row + 0.5) * ROW
        draw(sheet, x + across + 0.1, middle)
        sheet.text(words, x + across + 0.26, middle, SMALL, va="center_baseline", color=PALE)


def legend_rows(items: Sequence[Item], width: float) -> int:
    return max((row for _, row in flow(items, width)), default=-1) + 1


def flow(items: Sequence[Item], width: float) -> list[tuple[float, int]]:
    """Where each item goes, as words go into lines: how far right, in which row."""
    places: list[tuple[float, int]] = []
    across, row = 0.0, 0
    for _, words in items:
        needs = 0.26 + text_width(words, SMALL)
        if across and across + needs > width:
            across, row = 0.0, row + 1
        places.append((across, row))
        across += needs + GAP
    return places
