"""What is lost without a head: on the words that depend on a relation, and on all others.

Judgement -> Sheet -> PNG
"""

from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.colors import PowerNorm

from minigpt.heads import marks
from minigpt.heads.evidence import Evidence
from minigpt.heads.judging import Judgement
from minigpt.heads.marks import SMALL, line_height
from minigpt.heads.plots import EDGE, titled
from minigpt.heads.relations import RELATIONS
from minigpt.heads.roles import EFFECT, FEWEST, SPECIFICITY, Role, relation_label
from minigpt.heads.sheet import INK, PALE, Sheet, wrapped

NAMES, WIDE, HIGH = 1.9, 0.74, 0.42  # inches for relations, of a cell
MOST_HEADS = 12  # columns: of more heads those that are needed most
NARROWEST = 7.0  # inches, for the words below
TO_COLOUR = PowerNorm(0.5, 0, 1)  # small losses are seen too


def ablation(judgement: Judgement, subtitle: str = "") -> Sheet:
    """A cell for each relation and head: nats lost there without the head, below them elsewhere.

    Framed where the head is needed for the relation, as the rule for labels demands.
    """
    found = [one for one in judgement.evidence if not bool(one.there.mean.isnan().all())]
    heads = most_needed(judgement, found)
    width = max(NAMES + len(heads) * WIDE, NARROWEST)
    lines = wrapped(explained(len(heads), len(judgement.roles)), width, SMALL)
    height = 0.3 + (len(found) + 1) * HIGH + 0.35 + len(lines) * line_height()
    sheet, top = titled(width, height, ablation_title(found, judgement.roles), subtitle)
    left, upper = EDGE + NAMES, top + 0.3
    most = max([0.1, *(lost(one, role) for one in found for role in heads)])
    for column, role in enumerate(heads):
        x = left + (column + 0.5) * WIDE
        sheet.text(role.name, x, upper - 0.08, 9.5, ha="center", weight="bold")
    for row, one in enumerate(found):
        y = upper + row * HIGH
        row_name(sheet, RELATIONS[one.relation].words, left, y)
        for column, role in enumerate(heads):
            draw_cell(sheet, one, role, most, left + column * WIDE, y)
    draw_all_words(sheet, judgement, heads, most, left, upper + len(found) * HIGH + 0.1)
    for number, line in enumerate(lines):
        y = upper + (len(found) + 1) * HIGH + 0.35 + number * line_height()
        sheet.text(line, EDGE, y, SMALL, color=PALE)
    return sheet


def explained(shown: int, number: int) -> str:
    words = (
        "Upper number: nats lost without the head on the words that depend on the relation; lower: "
        "on all other words. Blank: less than 0.05. Framed: the head is needed; surely more than "
        f"{EFFECT:.2f}, at least {SPECIFICITY:.0f} times as much as elsewhere, seen in {FEWEST} "
        "stories or more."
    )
    return words + (f" Shown: the {shown} of {number} heads that matter most." * (shown < number))


def most_needed(judgement: Judgement, found: Sequence[Evidence]) -> list[Role]:
    """Those heads without which some relation loses most, by layer and head."""
    roles = sorted(judgement.roles, key=lambda role: -max([lost(one, role) for one in found] + [0]))
    return sorted(roles[:MOST_HEADS], key=lambda role: (role.layer, role.head))


def lost(one: Evidence, role: Role) -> float:
    return float(one.there.mean[role.layer, role.head])


def elsewhere(one: Evidence, role: Role) -> float:
    return float(one.elsewhere[role.layer, role.head])


def needed(one: Evidence, role: Role) -> bool:
    """Whether a label says so, alone or with a look."""
    label = relation_label(one, (role.layer, role.head))
    return label is not None and label.kind in ("resolves", "needed")


def ablation_title(found: Sequence[Evidence], roles: Sequence[Role]) -> str:
    """As in: without L2H1, refrains lose +3.86 nats a word, all other words +0.26; …"""
    pairs = [(one, role) for one in found for role in roles]
    if not pairs:
        return "No words depend on what heads could look at"
    one, role = max(pairs, key=lambda pair: (needed(*pair), lost(*pair)))
    number = sum(any(needed(one, role) for one in found) for role in roles)
    title = f"Without {role.name}, {RELATIONS[one.relation].words} lose {lost(one, role):.2f} nats "
    title += f"a word, other words {elsewhere(one, role):.2f}; "
    return title + f"{number} of {len(roles)} heads needed for some relation"


# ------------------------------------------------------------------------------ drawing


def row_name(sheet: Sheet, words: str, x: float, y: float) -> None:
    sheet.text(words, x - 0.1, y + HIGH / 2, 9.5, ha="right", va="center_baseline")


def draw_cell(sheet: Sheet, one: Evidence, role: Role, most: float, x: float, y: float) -> None:
    ink = shaded(sheet, lost(one, role) / most, x, y)
    framed, style = needed(one, role), {"ha": "center", "color": ink}
    if framed:
        frame: dict[str, Any] = {"fill": False, "edgecolor": marks.VERMILION, "linewidth": 2.2}
        marks.box(sheet, x + 0.025, y + 0.025, WIDE - 0.05, HIGH - 0.05, **frame)
    if framed or abs(lost(one, role)) >= 0.05:
        weight = "bold" if framed else "normal"
        sheet.text(f"{lost(one, role):+.2f}", x + WIDE / 2, y + 0.2, 9, weight=weight, **style)
        sheet.text(f"{elsewhere(one, role):+.2f}", x + WIDE / 2, y + 0.345, 7.5, **style)


def draw_all_words(
    sheet: Sheet, judgement: Judgement, heads: Sequence[Role], most: float, x: float, y: float
) -> None:
    """The last row: what a word loses on the whole."""
    row_name(sheet, "all words", x, y)
    for column, role in enumerate(heads):
        value = float(judgement.effect.mean[role.layer, role.head])
        ink = shaded(sheet, value / most, x + column * WIDE, y)
        place = x + (column + 0.5) * WIDE, y + HIGH / 2
        sheet.text(f"{value:+.3f}", *place, 8.5, ha="center", va="center_baseline", color=ink)


def shaded(sheet: Sheet, share: float, x: float, y: float) -> str:
    """A cell, the darker the larger its share of the most; returns the colour to write with."""
    share = max(share, 0.0) if share == share else 0.0
    colour = matplotlib.colormaps["Blues"](TO_COLOUR(share))
    marks.box(sheet, x, y, WIDE, HIGH, facecolor=colour, edgecolor="white")
    return "white" if share > 0.35 else INK
