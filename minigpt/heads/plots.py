"""Pictures of attention: one head large, or all heads of a model beside each other.

Rows are the tokens that look, columns those looked at; the darker, the more. White could be
looked at and is not, grey is the future. Colours follow the square root of a weight, so that
small weights are seen too.

weights (…, T, T), labels -> Sheet -> PNG
"""

import math
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import PowerNorm
from torch import Tensor

from minigpt.heads.findings import Finding, in_short
from minigpt.heads.sheet import INK, LINE, PALE, POINTS, Sheet, text_width, wrapped
from minigpt.heads.terminal import shortened

FUTURE = "#e4e4e4"
TO_COLOUR = PowerNorm(0.5, 0, 1)
SHADES = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 1)  # marked in the legend
LONGEST_LABEL = 14
SMALLEST, LARGEST = 6.0, 10.0  # letters of labels, in points
TITLE, SUBTITLE = 13.0, 9.0
EDGE, SMALLEST_WIDTH = 0.15, 5.0
FEW = 20  # tokens whose weights are written out
MANY = 160  # rows from which on a small picture shows the largest weight of each block of them

# ------------------------------------------------------------------------------ two pictures


def head_picture(weights: Tensor, labels: Sequence[str], title: str, subtitle: str) -> Sheet:
    """One head's weights (T, T), with as many token labels as there is room for."""
    side = min(max(0.3 * len(labels), 3.6), 8.5)
    margin = label_room(labels, side) + 0.3
    sheet, top = titled(margin + side + 0.8, margin + side, title, subtitle)
    x, y = EDGE + margin, top + margin
    draw(sheet, weights, x, y, side)
    label_rows(sheet, labels, x, y, side)
    label_columns(sheet, labels, x, y, side, "bottom")
    middle = {"ha": "center", "va": "center", "color": PALE}
    sheet.text("this token looks …", EDGE + 0.1, y + side / 2, 10, rotation=90, **middle)
    sheet.text("… at this one", x + side / 2, top + 0.1, 10, **middle)
    if len(labels) <= FEW:
        write_numbers(sheet, weights.tolist(), x, y, side / len(labels))
    draw_legend(sheet, x + side + 0.15, y, side)
    return sheet


def grid_picture(
    weights: Tensor, labels: Sequence[str], findings: Sequence[Finding], subtitle: str
) -> Sheet:
    """All heads (L, H, T, T): a row for each layer, over each head what describes it best."""
    num_layers, num_heads = weights.shape[:2]
    side = min(max(11 / num_heads, 1.5), 3.2)
    size = 8.0 if side > 2 else 6.5
    words = [wrapped(finding.words, side, size) for finding in findings]
    line = LINE * size / POINTS
    above = line * (1 + max(map(len, words))) + 0.15
    room, gap = label_room(labels, side), 0.2
    height = num_layers * (above + side) + room
    sheet, top = titled(room + num_heads * (side + gap), height, in_short(findings), subtitle)
    for finding, lines in zip(findings, words, strict=True):
        x = EDGE + room + finding.head * (side + gap)
        y = top + above + finding.layer * (above + side)
        draw(sheet, weights[finding.layer, finding.head], x, y, side, math.ceil(len(labels) / MANY))
        for number, text in enumerate(reversed(lines)):
            sheet.text(text, x, y - 0.05 - number * line, size, color=PALE)
        sheet.text(finding.name, x, y - 0.05 - len(lines) * line, size, weight="bold")
        if finding.head == 0:
            label_rows(sheet, labels, x, y, side)
        if finding.layer == num_layers - 1:
            label_columns(sheet, labels, x, y + side, side, "top")
    return sheet


# ------------------------------------------------------------------------------ their parts


def titled(width: float, height: float, title: str, subtitle: str) -> tuple[Sheet, float]:
    """A sheet with a title over `width` × `height` inches, and the height where those begin."""
    width = max(width, SMALLEST_WIDTH)
    lines = [(text, TITLE, INK, "bold") for text in wrapped(title, width, TITLE, "bold")]
    lines += [(text, SUBTITLE, PALE, "normal") for text in wrapped(subtitle, width, SUBTITLE)]
    top = EDGE + sum(LINE * size for _, size, _, _ in lines) / POINTS + 0.1
    sheet = Sheet(width + 2 * EDGE, top + height + EDGE)
    y = EDGE
    for text, size, colour, weight in lines:
        y += LINE * size / POINTS
        sheet.text(text, EDGE, y, size, color=colour, weight=weight)
    return sheet, top


def draw(sheet: Sheet, weights: Tensor, x: float, y: float, side: float, block: int = 1) -> None:
    """A matrix in one hue from light to dark, for colour-blind readers too."""
    shown = coarse(weights.numpy(force=True), block)
    future = np.triu(np.ones(shown.shape, dtype=bool), k=1)
    colours = matplotlib.colormaps["Blues"].with_extremes(bad=FUTURE)
    sheet.image(np.ma.masked_array(shown, future), x, y, side, side, colours, TO_COLOUR)


def coarse(weights: np.ndarray, block: int) -> np.ndarray:
    """The largest weight of each block of rows and columns, so that no thin line is lost."""
    firsts = np.arange(0, len(weights), block)
    rows = np.maximum.reduceat(weights, firsts, axis=0)
    return np.maximum.reduceat(rows, firsts, axis=1)


def draw_legend(sheet: Sheet, x: float, y: float, height: float) -> None:
    steps = np.linspace(1, 0, 256)[:, None] ** 2
    sheet.image(steps, x, y, 0.15, height, matplotlib.colormaps["Blues"], TO_COLOUR)
    for shade in SHADES:
        place = y + height * (1 - shade**0.5)
        sheet.text(f"{shade:g}", x + 0.2, place, 9, va="center", color=PALE)


def write_numbers(
    sheet: Sheet, weights: list[list[float]], x: float, y: float, cell: float
) -> None:
    """The weights in their cells, where they are not next to nothing."""
    size = min(0.3 * POINTS * cell, LARGEST)
    for query, row in enumerate(weights):
        for key, weight in enumerate(row[: query + 1]):
            if weight >= 0.05:
                style: dict[str, Any] = {
                    "ha": "center",
                    "va": "center",
                    "color": "white" if weight > 0.3 else INK,
                }
                place = x + (key + 0.5) * cell, y + (query + 0.5) * cell
                sheet.text(f"{weight:.2f}".lstrip("0"), *place, size, **style)


# ------------------------------------------------------------------------------ labels


def label_size(labels: Sequence[str], side: float) -> float:
    """Letters that fit a cell, or the smallest to read, then not on every cell."""
    return min(max(0.75 * POINTS * side / len(labels), SMALLEST), LARGEST)


def label_room(labels: Sequence[str], side: float) -> float:
    """The inches that the longest label takes."""
    size = label_size(labels, side)
    return 0.1 + max(text_width(shortened(label, LONGEST_LABEL), size) for label in set(labels))


def label_rows(sheet: Sheet, labels: Sequence[str], x: float, y: float, side: float) -> None:
    for place, label, size in spaced(labels, side):
        sheet.text(label, x - 0.04, y + place, size, ha="right", va="center")


def label_columns(
    sheet: Sheet, labels: Sequence[str], x: float, y: float, side: float, end: str
) -> None:
    """Labels upright; `end` of them is at the height `y`."""
    y += 0.04 if end == "top" else -0.04
    for place, label, size in spaced(labels, side):
        sheet.text(label, x + place, y, size, ha="center", va=end, rotation=90)


def spaced(labels: Sequence[str], side: float) -> list[tuple[float, str, float]]:
    """As many labels as fit without touching: place along the side, text, size of letters."""
    size, cell = label_size(labels, side), side / len(labels)
    step = math.ceil(1.25 * size / POINTS / cell)
    return [
        ((index + 0.5) * cell, shortened(labels[index], LONGEST_LABEL), size)
        for index in range(0, len(labels), step)
    ]
