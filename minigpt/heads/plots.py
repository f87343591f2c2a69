"""Pictures of attention: one head large, or all heads of a model beside each other.

Rows are the tokens that look, columns those looked at; the darker, the more. White could be
looked at and is not, grey is the future. Colours follow the square root of a weight, so that
small weights are seen too.

weights (…, T, T), labels -> Figure -> PNG
"""

import io
import math
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

from minigpt.heads.canvas import INK, LINE, PALE, POINTS, Canvas, drawable, text_width, wrapped
from minigpt.heads.findings import Finding, in_short
from minigpt.heads.terminal import shortened

FUTURE, BORDER = "#e4e4e4", "#bbbbbb"
SHADES = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 1)  # marked in the legend
EDGES = ("left", "right", "top", "bottom")
LONGEST_LABEL = 14
SMALLEST, LARGEST = 6.0, 10.0  # letters, in points
FEW = 20  # tokens whose weights are written out
MANY = 160  # rows from which on a small picture shows the largest weight of each block of them

# ------------------------------------------------------------------------------ two pictures


def head_picture(weights: Tensor, labels: Sequence[str], title: str, subtitle: str) -> Figure:
    """One head's weights (T, T), with as many token labels as there is room for."""
    side = min(max(0.3 * len(labels), 3.6), 8.5)
    margin = label_room(labels, side) + 0.3
    canvas = Canvas(margin + side + 0.8, margin + side, title, subtitle)
    axes = canvas.axes(margin, margin, side, side)
    image = draw(axes, weights)
    mark(axes, labels, side, "left")
    mark(axes, labels, side, "top")
    axes.set_ylabel("this token looks …", color=PALE)
    axes.set_xlabel("… at this one", color=PALE)
    axes.xaxis.set_label_position("top")
    if len(labels) <= FEW:
        write_numbers(axes, weights.tolist(), min(0.3 * POINTS * side / len(labels), LARGEST))
    bar = canvas.axes(margin + side + 0.15, margin, 0.15, side)
    legend = canvas.figure.colorbar(image, cax=bar)
    legend.set_ticks(list(SHADES), labels=[f"{shade:g}" for shade in SHADES], color=PALE)
    legend.outline.set(color=BORDER, linewidth=0.5)
    return canvas.figure


def grid_picture(
    weights: Tensor, labels: Sequence[str], findings: Sequence[Finding], subtitle: str
) -> Figure:
    """All heads (L, H, T, T): a row for each layer, over each head what describes it best."""
    num_layers, num_heads = weights.shape[:2]
    side = min(max(11 / num_heads, 1.5), 3.2)
    size = 9.0 if side > 2 else 6.5
    words = [wrapped(finding.words, side, size) for finding in findings]
    lines = 1 + max(map(len, words))
    margin, gap, above = label_room(labels, side), 0.2, (LINE * size * lines + 8) / POINTS
    width, height = num_heads * (side + gap), num_layers * (side + above)
    canvas = Canvas(margin + width, height + margin, in_short(findings), subtitle)
    for finding, texts in zip(findings, words, strict=True):
        left = margin + finding.head * (side + gap)
        top = above + finding.layer * (side + above)
        axes = canvas.axes(left, top, side, side)
        draw(axes, weights[finding.layer, finding.head], math.ceil(len(labels) / MANY))
        caption(axes, finding.name, texts, size)
        if finding.head == 0:
            mark(axes, labels, side, "left")
        if finding.layer == num_layers - 1:
            mark(axes, labels, side, "bottom")
    return canvas.figure


def png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    return picture.getvalue()


# ------------------------------------------------------------------------------ their parts


def draw(axes: Axes, weights: Tensor, block: int = 1) -> AxesImage:
    """The matrix in one hue from light to dark, for colour-blind readers too; without labels."""
    shown = coarse(weights.numpy(force=True), block)
    future = np.triu(np.ones(shown.shape, dtype=bool), k=1)
    end = block * len(shown) - 0.5  # a cell's middle is the number of its token
    image = axes.imshow(
        np.ma.masked_array(shown, future),
        cmap=matplotlib.colormaps["Blues"].with_extremes(bad=FUTURE),
        norm=PowerNorm(0.5, 0, 1),
        extent=(-0.5, end, end, -0.5),
    )
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color=BORDER, linewidth=0.5)
    return image


def coarse(weights: np.ndarray, block: int) -> np.ndarray:
    """The largest weight of each block of rows and columns, so that no thin line is lost."""
    firsts = np.arange(0, len(weights), block)
    rows = np.maximum.reduceat(weights, firsts, axis=0)
    return np.maximum.reduceat(rows, firsts, axis=1)


def label_size(labels: Sequence[str], side: float) -> float:
    """Letters that fit a cell, or the smallest to read, then not on every cell."""
    return min(max(0.75 * POINTS * side / len(labels), SMALLEST), LARGEST)


def label_room(labels: Sequence[str], side: float) -> float:
    """The inches that the longest label takes."""
    size = label_size(labels, side)
    return max(text_width(shown_label(label), size) for label in labels) + 0.1


def shown_label(label: str) -> str:
    return drawable(shortened(label, LONGEST_LABEL))


def mark(axes: Axes, labels: Sequence[str], side: float, edge: str) -> None:
    """Writes the labels along one edge, as many as fit without touching."""
    size = label_size(labels, side)
    step = math.ceil(1.25 * size * len(labels) / (POINTS * side))
    places = range(0, len(labels), step)
    texts = [shown_label(labels[place]) for place in places]
    style = {"size": size, "color": INK, "parse_math": False}
    if edge == "left":
        axes.set_yticks(places, texts, **style)
    else:
        axes.set_xticks(places, texts, rotation=90, **style)
    axis = "y" if edge == "left" else "x"
    axes.tick_params(axis=axis, length=0, pad=2, **{f"label{e}": e == edge for e in EDGES})


def write_numbers(axes: Axes, weights: list[list[float]], size: float) -> None:
    """The weights in their cells, where they are not next to nothing."""
    for query, row in enumerate(weights):
        for key, weight in enumerate(row[: query + 1]):
            if weight >= 0.05:
                colour = "white" if weight > 0.3 else INK
                text = f"{weight:.2f}".lstrip("0")
                axes.text(key, query, text, ha="center", va="center", size=size, color=colour)


def caption(axes: Axes, name: str, lines: Sequence[str], size: float) -> None:
    """A head's name and below it what describes it, over its picture."""
    texts = [*reversed(lines), name]
    for number, text in enumerate(texts):
        weight, colour = ("bold", INK) if text is name else ("normal", PALE)
        axes.annotate(
            text,
            (0, 1),
            xytext=(0, 4 + LINE * size * number),
            xycoords="axes fraction",
            textcoords="offset points",
            size=size,
            weight=weight,
            color=colour,
            parse_math=False,
        )
