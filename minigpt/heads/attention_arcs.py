"""A story to read, with arcs from a word to those that a head looks at from there.

story, questions, weights -> Sheet -> PNG
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.patches import PathPatch
from matplotlib.path import Path
from torch import Tensor

from minigpt.heads import marks
from minigpt.heads.cases import in_words
from minigpt.heads.marks import Draw, Item, box, legend, legend_rows
from minigpt.heads.plots import EDGE, titled
from minigpt.heads.relations import SENTENCE_ENDS, Question, Story
from minigpt.heads.sheet import POINTS, Sheet, text_width, wrapped
from minigpt.stories import spelling

WIDTH, SIZE, LINE = 9.6, 13.0, 0.68  # inches of a line, points of its letters, inches to the next
ABOVE = 0.55  # inches over the first line, for arcs
LEAST, TOLD = 0.03, 0.10  # weight from which an arc is drawn, its number is written
COLOURS = (marks.BLUE, marks.VERMILION)  # of the first and the second question
STYLES = ("-", "--")
NAMES = ("Blue", "Orange, dashed")
RIGHT: dict[str, Any] = {"fill": False, "edgecolor": marks.GREEN, "linewidth": 2}
WRONG: dict[str, Any] = {"fill": False, "edgecolor": "#808080", "linewidth": 1.4, "linestyle": ":"}


@dataclass(frozen=True)
class Place:
    """Where a word stands: left end, baseline and width, in inches."""

    x: float
    y: float
    width: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


Asked = Sequence[tuple[Question, Tensor]]


def attention_arcs(story: Story, asked: Asked, title: str, subtitle: str = "") -> Sheet:
    """One or two questions about a story, each with a head's weights (T,) at its query.

    Right places are framed, wrong candidates dotted; arcs are the wider, the more weight.
    """
    words = shown_words(story, [question for question, _ in asked])
    places, items = laid_out(words), arc_items()
    cases = [in_words(story, question, row) for question, row in asked]
    if len(cases) > 1:
        cases = [f"{name}: {case}" for name, case in zip(NAMES, cases, strict=True)]
    told = [line for case in cases for line in wrapped(case, WIDTH, 10)]
    text = places[-1].y + 0.5
    height = text + 0.2 * len(told) + 0.15 + legend_rows(items, WIDTH) * marks.ROW
    sheet, top = titled(WIDTH, height, title, subtitle)
    places = [Place(EDGE + place.x, top + place.y, place.width) for place in places]
    for number, (question, row) in enumerate(asked):
        draw_question(sheet, places, question, row, number)
    for word, place in zip(words, places, strict=True):
        sheet.text(word.strip(), place.x, place.y, SIZE)
    for number, line in enumerate(told):
        sheet.text(line, EDGE, top + text + 0.2 * (number + 0.5), 10)
    legend(sheet, items, EDGE, top + text + 0.2 * len(told) + 0.1, WIDTH)
    return sheet


def shown_words(story: Story, questions: Sequence[Question]) -> list[str]:
    """The story from its first word to the end of the sentence that is asked last, as pieces."""
    last = max(place for q in questions for place in (q.query, *q.targets))
    ends = [at for at in range(last, len(story.ids)) if story.words[at] in SENTENCE_ENDS]
    end = min(ends, default=len(story.ids) - 1)
    return [spelling.piece_of(word) for word in story.words[1 : end + 1]]


def laid_out(words: Sequence[str]) -> list[Place]:
    """Words as running text, in lines of at most WIDTH inches that begin with no punctuation."""
    space = text_width("n n", SIZE) - text_width("nn", SIZE)
    places: list[Place] = []
    x, y = 0.0, ABOVE
    for chunk in chunks(words):
        widths = [text_width(word.strip(), SIZE) for word in chunk]
        x += space if places else 0.0
        if x + sum(widths) > WIDTH:
            x, y = 0.0, y + LINE
        for width in widths:
            places.append(Place(x, y, width))
            x += width
    return places


def chunks(words: Sequence[str]) -> list[list[str]]:
    """What stands together without a space: a word and the comma after it."""
    found: list[list[str]] = []
    for word in words:
        if found and not word.startswith(" "):
            found[-1].append(word)
        else:
            found.append([word])
    return found


# ------------------------------------------------------------------------------ one question


def draw_question(
    sheet: Sheet, places: Sequence[Place], question: Question, row: Tensor, number: int
) -> None:
    """Frames, arcs and shares; word t of the story has its place at t − 1."""
    start, colour = places[question.query - 1], COLOURS[number]
    around(sheet, start, facecolor=colour, edgecolor="none", alpha=0.3)
    for at in question.others:
        around(sheet, places[at - 1], **WRONG)
    for at in question.gold:
        around(sheet, places[at - 1], **RIGHT)
    for at in question.targets:
        underline(sheet, places[at - 1], colour)
    looked = [(places[at - 1], float(row[at])) for at in range(1, question.query)]
    for place, weight in looked:
        if weight >= LEAST:
            arc(sheet, start, place, weight, number)
    write_shares(sheet, [look for look in looked if look[1] >= TOLD], number)


def around(sheet: Sheet, place: Place, **style: Any) -> None:
    tall = 1.35 * SIZE / POINTS
    box(sheet, place.x - 0.015, place.y - 0.78 * tall, place.width + 0.03, tall, **style)


def underline(sheet: Sheet, place: Place, colour: str) -> None:
    ends = [place.x, place.x + place.width], [place.y + 0.045] * 2
    sheet.axes.plot(*ends, color=colour, linewidth=2, solid_capstyle="butt")


def write_shares(sheet: Sheet, looked: Sequence[tuple[Place, float]], number: int) -> None:
    """Weights below their words, a row for each question; none where another is in the way."""
    line, end = 0.0, 0.0
    for place, weight in looked:
        words, y = f"{weight:.0%}", place.y + 0.19 + 0.13 * number
        half = text_width(words, 8, "bold") / 2
        if y > line or place.middle - half > end + 0.04:
            style = {"ha": "center", "color": COLOURS[number], "weight": "bold"}
            sheet.text(words, place.middle, y, 8, **style)
            line, end = y, place.middle + half


def arc(sheet: Sheet, start: Place, end: Place, weight: float, number: int) -> None:
    """A curve over the words from one to another, the wider and darker the more weight."""
    rise = min(0.3, 0.12 + 0.05 * abs(start.middle - end.middle))
    (x0, y0), (x1, y1) = ((place.middle, place.y - 0.2) for place in (start, end))
    points = [(x0, y0), (x0, y0 - rise), (x1, y1 - rise), (x1, y1)]
    path = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    style: dict[str, Any] = {"edgecolor": COLOURS[number], "linestyle": STYLES[number]}
    style |= {"linewidth": 0.6 + 3.6 * weight, "alpha": 0.3 + 0.4 * weight}
    sheet.axes.add_patch(PathPatch(path, fill=False, **style))


def arc_items() -> list[Item]:
    """The legend: frames, arcs, lines."""

    def frame(**style: Any) -> Draw:
        return lambda sheet, x, y: box(sheet, x - 0.1, y - 0.07, 0.2, 0.14, **style)

    def curve(sheet: Sheet, x: float, y: float) -> None:
        arc(sheet, Place(x - 0.09, y + 0.25, 0), Place(x + 0.09, y + 0.25, 0), 0.5, 0)

    def due(sheet: Sheet, x: float, y: float) -> None:
        underline(sheet, Place(x - 0.1, y, 0.2), COLOURS[0])

    return [
        (frame(facecolor=COLOURS[0], edgecolor="none", alpha=0.3), "the word that looks"),
        (curve, "where to: the wider, the more"),
        (frame(**RIGHT), "a right place"),
        (frame(**WRONG), "a wrong candidate"),
        (due, "depends on looking right"),
    ]
