"""A text to read, with arcs from one word to those that a head looks at from there.

story, weights -> Sheet -> PNG
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from torch import Tensor

from minigpt.heads.asking import Answers
from minigpt.heads.evidence import SCORE, Evidence, halves
from minigpt.heads.plots import EDGE, titled
from minigpt.heads.relations import Question, Story
from minigpt.heads.sheet import INK, PALE, POINTS, Sheet, text_width
from minigpt.stories import spelling

WIDTH, SIZE = 9.0, 12.0  # inches of a line, points of its letters
LINE, ROOM = 0.62, 0.4  # inches from line to line, above the first one
QUERY, LOOK, GOLD = "#D55E00", "#0072B2", "#009E73"
FAR = 70  # words into a story; a picture should be short
LEAST = 0.03  # weight from which an arc is drawn
Place = tuple[float, float, float]  # left, baseline, width


def story_with_arcs(
    story: Story, question: Question, weights: Tensor, title: str, subtitle: str
) -> Sheet:
    """One question: its word, where the head (T,) looks from there, and what is right."""
    words = [spelling.piece_of(word) for word in story.words[1 : len(story.ids)]]
    height = laid_out(words)[-1][1] + 0.65
    sheet, top = titled(WIDTH, height, title, subtitle)
    places = [(EDGE + x, top + y, width) for x, y, width in laid_out(words)]
    for at, (word, (x, y, width)) in enumerate(zip(words, places, strict=True), 1):
        box = x - 0.02, y - 0.19, width + 0.04
        if at == question.query:
            mark(sheet, *box, facecolor=QUERY, alpha=0.25)
        if at <= question.query:
            mark(sheet, *box, facecolor=LOOK, alpha=0.6 * float(weights[at]))
        if at in question.gold:
            mark(sheet, *box, fill=False, edgecolor=GOLD, linewidth=1.8)
        elif at in question.others:
            mark(sheet, *box, fill=False, edgecolor=PALE, linewidth=1, linestyle=":")
        sheet.text(word.strip(), x, y, SIZE, color=INK if at <= question.query else PALE)
    for at, place in enumerate(places[: question.query - 1], 1):
        if weights[at] >= LEAST:
            arc(sheet, places[question.query - 1], place, float(weights[at]))
    sheet.text(legend(story, question), EDGE, top + height - 0.15, 9, color=PALE)
    return sheet


def legend(story: Story, question: Question) -> str:
    word = story.words[question.query]
    return (
        f"from “{word}” (orange): blue, the more the darker; green frame: a right place; dotted: a "
        "wrong candidate; grey: what comes later"
    )


def laid_out(words: Sequence[str]) -> list[Place]:
    """Where each word stands, in lines of at most WIDTH inches."""
    space = text_width("n n", SIZE) - 2 * text_width("n", SIZE)
    places: list[Place] = []
    x, y = 0.0, ROOM
    for word in words:
        width = text_width(word.strip(), SIZE)
        x += space if word.startswith(" ") and x else 0.0
        if x + width > WIDTH - 0.2:
            x, y = 0.0, y + LINE
        places.append((x, y, width))
        x += width
    return places


def mark(sheet: Sheet, x: float, y: float, width: float, **style: Any) -> None:
    sheet.axes.add_patch(Rectangle((x, y), width, SIZE / POINTS + 0.09, **style))


def arc(sheet: Sheet, start: Place, end: Place, weight: float) -> None:
    """A curve over the words, the thicker the more weight."""
    x0, x1 = (x + width / 2 for x, _, width in (start, end))
    y0, y1 = start[1] - 0.2, end[1] - 0.2
    rise = min(0.3, 0.1 + abs(x1 - x0) * 0.06)
    points = [(x0, y0), (x0, y0 - rise), (x1, y1 - rise), (x1, y1)]
    path = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    width = 0.6 + 3.4 * weight
    curve = PathPatch(path, fill=False, edgecolor=LOOK, linewidth=width, alpha=0.35 + 0.6 * weight)
    sheet.axes.add_patch(curve)


def telling_case(answers: Answers, one: Evidence, head: tuple[int, int]) -> tuple[int, Question]:
    """A question of half B that a head answers rightly, a hard one if there is; -> story, question.

    Among those the one with most weight on the right place, early in its story.
    """
    in_b = halves(answers.num_stories)
    cases = [
        (
            not (question.hard and answers.values[SCORE][at][head]),
            question.query > FAR,
            -float(answers.values["mass"][at][head]),
            at,
        )
        for at, question in enumerate(answers.questions)
        if question.relation == one.relation and in_b[answers.story_of[at]]
    ]
    at = min(cases)[-1]
    return int(answers.story_of[at]), answers.questions[at]
