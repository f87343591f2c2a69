"""When heads begin to find the right places, over the loss of the words that depend on them.

Judgement, history -> Sheet -> PNG
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from minigpt.heads import marks, roles
from minigpt.heads.changing import Head
from minigpt.heads.history import Record, birth
from minigpt.heads.judging import Judgement
from minigpt.heads.marks import SMALL, UNLABELLED, kind_for, line_height
from minigpt.heads.plots import EDGE, titled
from minigpt.heads.relations import RELATIONS
from minigpt.heads.roles import MARGIN
from minigpt.heads.sheet import INK, PALE, Sheet, wrapped

WIDE, UPPER, LOWER = 2.45, 0.85, 0.6  # inches of a panel: its width, score, loss
LEFT, ABOVE, BELOW, GAP = 0.5, 0.5, 0.35, 0.12  # room beside, above, below, between the two
COLUMNS = 4
VERBS = roles.VERBS | {UNLABELLED: "looks right for", "needed": "looks right for"}


@dataclass(frozen=True)
class Course:
    """One relation over the training, with the head that is drawn and when it was born."""

    relation: str
    head: Head
    kind: str
    born: int | None

    @property
    def name(self) -> str:
        return f"L{self.head[0]}H{self.head[1]}"

    @property
    def words(self) -> str:
        return RELATIONS[self.relation].words


def births(judgement: Judgement, history: Sequence[Record], subtitle: str = "") -> Sheet | None:
    """A panel for each relation: the head's score above, the loss below, steps to the right.

    The head is the one that resolves the relation, or else the one that scores best. None without
    a history.
    """
    told = courses(judgement, history)
    if not told:
        return None
    columns = min(COLUMNS, len(told))
    rows = math.ceil(len(told) / columns)
    wide, high = LEFT + WIDE, ABOVE + UPPER + GAP + LOWER + BELOW
    lines = wrapped(explained(), columns * wide, SMALL)
    height = rows * high + 0.2 + len(lines) * line_height()
    sheet, top = titled(columns * wide, height, births_title(told), subtitle)
    for place, course in enumerate(told):
        row, column = divmod(place, columns)
        draw_course(sheet, history, course, EDGE + column * wide, top + row * high)
    for number, line in enumerate(lines):
        y = top + rows * high + 0.25 + number * line_height()
        sheet.text(line, EDGE, y, SMALL, color=PALE)
    return sheet


def explained() -> str:
    return (
        "Above, over the steps of training: the share of questions where the head looks most at a "
        f"right place, with its lower bound; dashed: best answer without looking + {MARGIN:.2f}. "
        "Below: loss of the words that depend on it, in nats; dotted: its floor where known. The "
        "upright line is the birth: from then on the lower bound stays above the dashed line."
    )


def courses(judgement: Judgement, history: Sequence[Record]) -> list[Course]:
    """All relations that were recorded, the first born first, those without a birth last."""
    known = {name for record in history for name in record["relations"]}
    told = []
    for one in judgement.evidence:
        if one.relation in known:
            head = drawn_head(judgement, one.relation)
            kind = kind_for(judgement, one.relation, head)
            told.append(Course(one.relation, head, kind, birth(history, one.relation, head)))
    return sorted(told, key=lambda course: (course.born or math.inf, course.words))


def drawn_head(judgement: Judgement, relation: str) -> Head:
    """The best of the heads that resolve a relation; if none does, the best there is."""
    one = judgement.of(relation)
    heads = [(role.layer, role.head) for role in judgement.roles]
    able = [h for h in heads if kind_for(judgement, relation, h) in ("resolves", "together")]
    return max(able, key=lambda head: float(one.score.mean[head]), default=one.best)


def births_title(told: Sequence[Course]) -> str:
    """As in: L2H1 begins to resolve refrains at step 620, L0H1 agreement at step 940; …"""
    born = [course for course in told if course.born]
    if not born:
        return "No birth is certain on the few stories that were looked at during training"
    resolving = [course for course in born if course.kind in ("resolves", "together")]
    first, *others = resolving or born
    title = f"{first.name} begins to {'resolve' if resolving else 'look at'} {first.words} at step "
    title += f"{first.born:,}"
    title += "".join(f", {other.name} {other.words} at {other.born:,}" for other in others[:2])
    return title + f"; {len(born)} of {len(told)} relations have a birth"


# ------------------------------------------------------------------------------ one panel


def draw_course(
    sheet: Sheet, history: Sequence[Record], course: Course, x: float, y: float
) -> None:
    records = [record for record in history if course.relation in record["relations"]]
    steps = [record["step"] for record in records]
    found = [record["relations"][course.relation] for record in records]
    when = f"from step {course.born:,}" if course.born else "no birth"
    left = x + LEFT
    sheet.text(course.words, left, y + 0.22, 9.5, weight="bold")
    sheet.text(f"{course.name} {when}", left, y + 0.4, SMALL, color=PALE)
    upper = panel(sheet, left, y + ABOVE, UPPER, steps)
    draw_score(upper, steps, found, course.head)
    lower = panel(sheet, left, y + ABOVE + UPPER + GAP, LOWER, steps)
    draw_loss(lower, steps, found)
    upper.tick_params(labelbottom=False)
    for axes in (upper, lower):
        if course.born:
            axes.axvline(course.born, color=INK, linewidth=1.4)


def panel(sheet: Sheet, x: float, y: float, height: float, steps: Sequence[int]) -> Axes:
    """Axes at a place of the sheet, in inches, with steps on a logarithmic scale."""
    width, whole = sheet.figure.get_size_inches()
    place = x / width, 1 - (y + height) / whole, (WIDE - 0.25) / width, height / whole
    axes = sheet.figure.add_axes(place)
    axes.set_xscale("log")
    axes.set_xlim(max(min(steps) / 1.2, 0.5), max(steps) * 1.2)
    powers = range(math.ceil(math.log10(min(steps))), math.floor(math.log10(max(steps))) + 1)
    axes.set_xticks([10**power for power in powers], [f"{10**power:,}" for power in powers])
    axes.minorticks_off()
    axes.tick_params(labelsize=7.5, colors=PALE, length=2)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def draw_score(axes: Axes, steps: Sequence[int], found: Sequence[Any], head: Head) -> None:
    layer, place = head
    score = [one["score"][layer][place] for one in found]
    low = [one["low"][layer][place] for one in found]
    bar = [min(one["baseline"] + MARGIN, 1) for one in found]
    axes.fill_between(steps, low, score, color=marks.SKY, alpha=0.4, linewidth=0)
    axes.plot(steps, score, "o-", color=marks.BLUE, markersize=3, linewidth=1.4)
    axes.plot(steps, bar, "--", color=marks.VERMILION, linewidth=1.2)
    axes.set_ylim(-0.03, 1.08)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_ylabel("score", size=7.5, color=marks.BLUE)


def draw_loss(axes: Axes, steps: Sequence[int], found: Sequence[Any]) -> None:
    """The loss, where a word depends on the relation at all."""
    loss = [math.nan if one["loss"] is None else one["loss"] for one in found]
    known = [value for value in loss if value == value]
    axes.set_ylabel("loss", size=7.5, color=marks.GREEN)
    if not known:
        axes.text(0.5, 0.4, "no word depends on it", size=7.5, ha="center", color=PALE,
                  transform=axes.transAxes)  # fmt: skip
        axes.set_yticks([])
        return
    axes.plot(steps, loss, "s-", color=marks.GREEN, markersize=2.5, linewidth=1.4)
    if found[-1].get("floor") is not None:
        axes.axhline(found[-1]["floor"], color=marks.GREEN, linestyle=":", linewidth=1.2)
    top = math.ceil(max(known))
    axes.set_ylim(-0.05 * top, 1.1 * top)
    axes.set_yticks([0, top])
