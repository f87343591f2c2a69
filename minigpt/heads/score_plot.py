"""Relations: how well heads find the right places, held against what is found without looking.

Judgement -> Sheet -> PNG
"""

import math
from collections.abc import Sequence
from typing import Any

from minigpt.heads import marks
from minigpt.heads.evidence import Evidence
from minigpt.heads.judging import Judgement
from minigpt.heads.marks import KINDS, ROW, SMALL, UNLABELLED, Draw, Item, kind_for, symbol
from minigpt.heads.plots import EDGE, titled
from minigpt.heads.relations import RELATIONS
from minigpt.heads.roles import MARGIN, Role
from minigpt.heads.sheet import INK, PALE, Sheet

NAMES, BAR, WORDS = 1.9, 5.0, 3.5  # inches for relations, for scores from 0 to 1, for heads
HIGH, THICK = 0.48, 0.36  # of a relation's row, of its bar
BASELINES = {  # marker, and where it is in the bar's height, so that none hides another
    "offset": ("^", -0.145, "best fixed distance"),
    "nearest": ("o", -0.07, "nearest candidate"),
    "first": ("s", 0.06, "first candidate"),
    "any": ("D", 0.14, "any candidate (chance)"),
}
MOST_NAMED = 6  # relations in the title
RESOLVED = ("resolves", "together")
SHORT = {"resolves": "resolves them", "together": "resolves them with others"}
SHORT |= {"looks": "looks, without effect", "needed": "needed, but looks elsewhere"}
SHORT |= {UNLABELLED: "no label for this"}

# ------------------------------------------------------------------------------ scores


def relations(judgement: Judgement, subtitle: str = "") -> Sheet:
    """For each relation its best head's score with interval, and what is found without looking."""
    asked = [one for one in judgement.evidence if one.num_questions]
    found = sorted(asked, key=lambda one: rank(judgement, one))
    width, items = NAMES + BAR + WORDS, relation_items()
    rows = marks.legend_rows(items, width)
    height = len(found) * HIGH + rows * ROW + 0.85
    sheet, top = titled(width, height, relations_title(judgement, found), subtitle)
    left, bottom = EDGE + NAMES, top + 0.1 + len(found) * HIGH
    for share in (0, 0.25, 0.5, 0.75, 1):
        x = left + share * BAR
        sheet.axes.plot([x, x], [top + 0.1, bottom], color=marks.RULE, linewidth=0.8, zorder=0)
        sheet.text(f"{share:g}", x, bottom + 0.16, SMALL, ha="center", color=PALE)
    for row, one in enumerate(found):
        draw_relation(sheet, judgement, one, left, top + 0.1 + (row + 0.5) * HIGH)
    words = "share of questions where the best head looks most at a right place"
    sheet.text(words, left, bottom + 0.36, SMALL, color=PALE)
    marks.legend(sheet, items, EDGE, bottom + 0.5, width)
    return sheet


def rank(judgement: Judgement, one: Evidence) -> tuple[bool, int, float]:
    """Resolved relations first, among those alike the best found."""
    kind = kind_for(judgement, one.relation, one.best)
    score = float(one.score.mean[one.best].nan_to_num(0))
    return not resolvers(judgement, one), list(KINDS).index(kind), -score


def relations_title(judgement: Judgement, found: Sequence[Evidence]) -> str:
    """As in: heads resolve 5 of 13 relations: surnames (L2H1), agreement (L0H1)."""
    names = [
        f"{RELATIONS[one.relation].words} ({who[0]})"
        for one in found
        if (who := resolvers(judgement, one))
    ]
    title = f"Heads resolve {len(names)} of {len(found)} relations"
    title += ": " + ", ".join(names[:MOST_NAMED]) if names else ""
    return title + (", …" if len(names) > MOST_NAMED else "")


def resolvers(judgement: Judgement, one: Evidence) -> list[str]:
    """The names of the heads that resolve a relation, the best first."""

    def score(role: Role) -> float:
        return float(one.score.mean[role.layer, role.head])

    found = [
        role
        for role in judgement.roles
        if any(label.relation == one.relation and label.kind in RESOLVED for label in role.labels)
    ]
    return [role.name for role in sorted(found, key=score, reverse=True)]


def draw_relation(sheet: Sheet, judgement: Judgement, one: Evidence, left: float, y: float) -> None:
    """One row: the relation, its bar with all signs, the head and what it is called."""
    head, look = one.best, KINDS[kind_for(judgement, one.relation, one.best)]
    mean, low, high = (float(v[head]) for v in (one.score.mean, one.score.low, one.score.high))
    name = RELATIONS[one.relation].words
    sheet.text(name, left - 0.12, y, 10, ha="right", va="center_baseline")
    style = {"facecolor": look.colour, "hatch": look.pattern}
    marks.box(sheet, left, y - THICK / 2, BAR * mean, THICK, **style)
    draw_twin(sheet, left + BAR * one.twin, left + BAR * one.twin_high, y + THICK / 2 + 0.035)
    for key, (marker, offset, _) in BASELINES.items():
        if not math.isnan(one.baselines[key]):
            symbol(sheet, marker, left + BAR * one.baselines[key], y + offset, 5)
    draw_demand(sheet, left + BAR * min(one.best_baseline + MARGIN, 1), y, THICK + 0.06)
    draw_interval(sheet, left + BAR * low, left + BAR * high, y)
    draw_words(sheet, judgement, one, left + BAR + 0.2, y)


def draw_words(sheet: Sheet, judgement: Judgement, one: Evidence, x: float, y: float) -> None:
    """The best head, and who else resolves the relation where it does not."""
    kind, who = kind_for(judgement, one.relation, one.best), resolvers(judgement, one)
    words = f"{float(one.score.mean[one.best]):.2f} of {one.num_questions}, {SHORT.get(kind, kind)}"
    name = f"L{one.best[0]}H{one.best[1]}"
    style: dict[str, Any] = {"va": "center_baseline"}
    others = kind not in RESOLVED and bool(who)
    upper = y - 0.08 if others else y
    sheet.text(name, x, upper, 9, weight="bold", **style)
    sheet.text(words, x + 0.65, upper, 9, **style)
    if others:
        sheet.text(f"but {who[0]} resolves them", x + 0.65, y + 0.09, 9, **style)


def draw_interval(sheet: Sheet, low: float, high: float, y: float) -> None:
    """A dark line on a white one, to be seen on bars of any colour."""
    for colour, width in (("white", 3.6), (INK, 1.6)):
        sheet.axes.plot([low, high], [y, y], color=colour, linewidth=width)
        for x in (low, high):
            sheet.axes.plot([x, x], [y - 0.045, y + 0.045], color=colour, linewidth=width)


def draw_twin(sheet: Sheet, score: float, high: float, y: float) -> None:
    sheet.axes.plot([score, high], [y, y], color=marks.PURPLE, linewidth=1.4)
    sheet.axes.plot([score], [y], marker="x", color=marks.PURPLE, markersize=5, linestyle="none")


def draw_demand(sheet: Sheet, x: float, y: float, height: float) -> None:
    line: dict[str, Any] = {"color": marks.VERMILION, "linestyle": (0, (3, 1.5)), "linewidth": 1.6}
    sheet.axes.plot([x, x], [y - height / 2, y + height / 2], **line)


def relation_items() -> list[Item]:
    """The legend: what is found without looking, and how far a head must be above it."""
    found = [(sign_of(marker), words) for marker, _, words in BASELINES.values()]
    interval = "95% interval, of all heads and relations at once"
    demand = f"the best of these + {MARGIN:.2f}: what the interval must exceed"
    return [
        (lambda sheet, x, y: draw_interval(sheet, x - 0.09, x + 0.09, y), interval),
        (lambda sheet, x, y: draw_twin(sheet, x - 0.06, x + 0.1, y), "untrained model, and bound"),
        *found,
        (lambda sheet, x, y: draw_demand(sheet, x, y, 0.2), demand),
    ]


def sign_of(marker: str) -> Draw:
    return lambda sheet, x, y: symbol(sheet, marker, x, y)
