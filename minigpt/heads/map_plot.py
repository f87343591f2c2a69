"""All heads at a glance: what each is called, and how much is lost without it.

Judgement -> Sheet -> PNG
"""

import math
from collections.abc import Sequence

from minigpt.heads import marks
from minigpt.heads.judging import Judgement
from minigpt.heads.marks import KINDS, ROW, SMALL, kind_of, line_height
from minigpt.heads.plots import EDGE, titled
from minigpt.heads.roles import Role
from minigpt.heads.sheet import PALE, Sheet, wrapped

MARGIN = 0.4  # inches for the names of layers and of heads
TOLD, NAME, LOSS = 5.0, 0.7, 0.6  # width of the words beside the map, of name and loss in them
FEWEST_LINES, MOST_IN_TITLE = 16, 2
SMALLEST = 0.38  # side of the mark of a head without effect, of its cell

# ------------------------------------------------------------------------------ the map


def head_map(judgement: Judgement, subtitle: str = "") -> Sheet:
    """A mark for each head: its kind, and by its size what all words lose without the head."""
    num_layers, num_heads = judgement.effect.mean.shape
    cell = min(max(6.6 / num_heads, 0.55), 1.1)
    told = told_heads(judgement, round(num_layers * cell / line_height()))
    items = marks.kind_items(map(kind_of, judgement.roles))
    width = MARGIN + num_heads * cell + 0.4 + TOLD
    words = sum(len(lines) for _, _, lines in told) + 1
    middle = max(MARGIN + num_layers * cell, words * line_height()) + 0.25
    height = middle + (marks.legend_rows(items, width) + 1) * ROW + 0.15
    sheet, top = titled(width, height, map_title(judgement), subtitle)
    draw_map(sheet, judgement, top, cell)
    draw_told(sheet, told, EDGE + width - TOLD, top)
    sheet.text("The larger a square, the more is lost without the head.", EDGE, top + middle, SMALL)
    marks.legend(sheet, items, EDGE, top + middle + 0.15, width)
    return sheet


def map_title(judgement: Judgement) -> str:
    """As in: 6 of 12 heads labelled: L2H1 resolves surnames, refrains; L0H1 resolves agreement."""
    kinds = [kind_of(role) for role in judgement.roles]
    none, idle = kinds.count(marks.UNLABELLED), kinds.count("looks")
    title = f"{len(kinds) - none - idle} of {len(kinds)} heads labelled"
    parts = [f"{role.name} {main_part(role)}" for role in best_first(judgement)[:MOST_IN_TITLE]]
    title += ": " + "; ".join(parts) if parts else ""
    return title + (f"; {idle} more only look{'s' * (idle == 1)}" if idle else "")


def main_part(role: Role) -> str:
    return role.short.split("; ")[0]


def best_first(judgement: Judgement) -> list[Role]:
    """The labelled heads, the most telling kind first, among those the most needed."""

    def rank(role: Role) -> tuple[int, float]:
        return list(KINDS).index(kind_of(role)), -effect_of(judgement, role)

    return sorted((role for role in judgement.roles if role.labels), key=rank)


def effect_of(judgement: Judgement, role: Role) -> float:
    """Nats that a word loses without the head; 0 where nothing is known."""
    lost = float(judgement.effect.mean[role.layer, role.head])
    return lost if lost == lost else 0.0


def draw_map(sheet: Sheet, judgement: Judgement, top: float, cell: float) -> None:
    """Names of layers and heads, and the marks: a mark's area grows with the head's effect."""
    num_layers, num_heads = judgement.effect.mean.shape
    left, upper = EDGE + MARGIN, top + MARGIN
    largest = max(1e-9, *(effect_of(judgement, role) for role in judgement.roles))
    for layer in range(num_layers):
        y = upper + (layer + 0.5) * cell
        sheet.text(f"L{layer}", left - 0.1, y, 10, ha="right", va="center", color=PALE)
    for head in range(num_heads):
        x = left + (head + 0.5) * cell
        sheet.text(f"H{head}", x, upper - 0.1, 10, ha="center", color=PALE)
    for role in judgement.roles:
        x, y = left + (role.head + 0.5) * cell, upper + (role.layer + 0.5) * cell
        share = max(effect_of(judgement, role), 0) / largest
        marks.box(sheet, x - cell / 2, y - cell / 2, cell, cell, fill=False, edgecolor=marks.RULE)
        side = cell * (SMALLEST + (0.9 - SMALLEST) * math.sqrt(share))
        marks.mark(sheet, kind_of(role), x, y, side)


# ------------------------------------------------------------------------------ in words

Told = tuple[str, str, list[str]]  # a head's name, what is lost without it, its roles in lines


def told_heads(judgement: Judgement, num_lines: int) -> list[Told]:
    """As many labelled heads as there are lines for, and how many more there are."""
    left, told = max(num_lines, FEWEST_LINES), list[Told]()
    heads = best_first(judgement)
    for role in heads:
        lines = wrapped(role.short, TOLD - NAME - LOSS, SMALL)
        left -= len(lines)
        if left < 0:
            more = f"… and {len(heads) - len(told)} more heads with a label"
            return [*told, ("", "", [more])]
        told.append((role.name, f"{effect_of(judgement, role):+.3f}", lines))
    return told


def draw_told(sheet: Sheet, told: Sequence[Told], x: float, y: float) -> None:
    """Three columns: name, loss, roles."""
    y += line_height()
    sheet.text("nats a word lost without it, and what it does", x + NAME, y, SMALL, color=PALE)
    for name, lost, lines in told:
        sheet.text(name, x, y + line_height(), SMALL, weight="bold")
        sheet.text(lost, x + NAME, y + line_height(), SMALL)
        for line in lines:
            y += line_height()
            sheet.text(line, x + NAME + LOSS, y, SMALL)
