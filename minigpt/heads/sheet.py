"""A sheet to draw on, measured in inches from its upper left corner.

Everything is text or an image at a place, so a sheet of hundreds of small pictures is drawn in a
moment, and nothing moves by itself.

texts, images -> PNG
"""

import io
from typing import Any

import numpy as np
from matplotlib import font_manager
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path

INK, PALE, BORDER = "#1a1a1a", "#5a5a5a", "#bbbbbb"
DPI, POINTS = 120, 72  # in an inch
MOST_PIXELS = 8000  # along one side, for models with very many heads
LINE = 1.3  # a line's height, of its letters' size
WIDER = 1.05  # letters are drawn on whole pixels, so a line is a little wider than computed
MISSING = "□"  # for a character that the font lacks


class Sheet:
    """A white sheet of `width` × `height` inches."""

    def __init__(self, width: float, height: float) -> None:
        dpi = min(DPI, MOST_PIXELS / max(width, height))
        self.figure = Figure((width, height), dpi=dpi, facecolor="white")
        self.axes = self.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        self.axes.set_axis_off()

    def text(self, text: str, x: float, y: float, size: float, **style: Any) -> None:
        """Writes one line, by default with its left end on the baseline at (x, y)."""
        style = {"color": INK, **style}
        self.axes.text(x, y, drawable(text), size=size, parse_math=False, **style)

    def image(
        self, numbers: np.ndarray, x: float, y: float, width: float, height: float,
        colours: Colormap, norm: Normalize,
    ) -> None:  # fmt: skip
        """Draws a matrix, its first row on top, in a thin frame."""
        place = (x, x + width, y + height, y)
        self.axes.imshow(numbers, cmap=colours, norm=norm, extent=place, aspect="auto")
        frame = Rectangle((x, y), width, height, fill=False, edgecolor=BORDER, linewidth=0.5)
        self.axes.add_patch(frame)

    def png(self) -> bytes:
        picture = io.BytesIO()
        self.figure.savefig(picture, format="png", metadata={"Software": None})
        return picture.getvalue()

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        return self.png()


def drawable(text: str) -> str:
    """The text with control characters and those that the font lacks replaced."""
    font = font_manager.get_font(font_manager.findfont(FontProperties()))
    return "".join(c if c.isprintable() and font.get_char_index(ord(c)) else MISSING for c in text)


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """How wide a line is when it is drawn, in inches."""
    font = FontProperties(size=size, weight=weight)
    width, _, _ = text_to_path.get_text_width_height_descent(drawable(text), font, ismath=False)
    return WIDER * width / POINTS


def wrapped(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """The text in lines of at most `width` inches; a word that is longer has its own line."""
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, weight) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
