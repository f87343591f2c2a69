"""Pictures of attention: one head large, or all heads of a model beside each other.

Rows are the tokens that look, columns those looked at; the darker, the more. White could be
looked at and is not, grey is the future. Colours follow the square root of a weight, so that
small weights are seen too.

weights (…, T, T), labels -> Figure -> PNG
"""

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from minigpt.heads.findings import Finding

INK, PALE, FUTURE = "#1a1a1a", "#5a5a5a", "#e6e6e6"
DPI, POINTS = 120, 72  # in an inch
LARGEST = 6000  # pixels, for models with very many heads
LONGEST_LABEL = 14
LETTER = 0.6  # a letter's width, of its height
SHADES = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 1)  # marked in the legend
FEW = 20  # tokens whose weights are written out
MANY = 160  # tokens from which on a small picture shows the largest weight of each block

# ------------------------------------------------------------------------------ two pictures


def head_picture(weights: Tensor, labels: Sequence[str], title: str, subtitle: str) -> Figure:
    """One head's weights (T, T), with as many token labels as there is room for."""
    side = min(max(0.3 * len(labels), 3.6), 8.5)
    margin = 0.5 + length_of(labels)
    canvas = Canvas(margin + side + 1.0, title, subtitle, margin + side + 0.25)
    axes = canvas.square(margin, margin, side)
    image = draw(axes, weights.numpy(force=True))
    mark(axes, labels, side, "left", "top")
    axes.set_ylabel("this token looks …", color=PALE)
    axes.set_xlabel("… at this one", color=PALE)
    ...


def grid_picture(
    weights: Tensor, labels: Sequence[str], findings: Sequence[Finding], subtitle: str
) -> Figure:
    """All heads (L, H, T, T): a row for each layer, over each head what describes it best."""
