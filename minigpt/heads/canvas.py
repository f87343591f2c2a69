"""A picture laid out in inches, under a title, with text that the font can draw.

sizes, title -> Figure
"""

from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

INK, PALE = "#1a1a1a", "#5a5a5a"
DPI, POINTS = 120, 72  # in an inch
LARGEST = 8000  # pixels, for models with very many heads
LINE = 1.3  # a line's height, of its letters' size
EDGE = 0.15
TITLE, SUBTITLE = 13, 9
MISSING = "□"  # for a character that the font lacks


class Canvas:
    """A figure with a title on top and room for `width` × `height` inches below it."""

    def __init__(self, width: float, height: float, title: str, subtitle: str) -> None:
        width = max(width + 2 * EDGE, 5.0)
        room = width - 2 * EDGE
        lines = [(line, TITLE, INK, "bold") for line in wrapped(title, room, TITLE, "bold")]
        lines += [(line, SUBTITLE, PALE, "normal") for line in wrapped(subtitle, room, SUBTITLE)]
        self.above = EDGE + sum(LINE * size for _, size, _, _ in lines) / POINTS + 0.1
        self.width, self.height = width, self.above + height + EDGE
        dpi = min(DPI, LARGEST / max(self.width, self.height))
        self.figure = Figure((self.width, self.height), dpi=dpi, facecolor="white")
        top = EDGE
        for line, size, colour, weight in lines:
            self.write(line, top, size, color=colour, weight=weight)
            top += LINE * size / POINTS

    def write(self, text: str, top: float, size: float, **style: str) -> None:
        x, y = EDGE / self.width, 1 - top / self.height
        self.figure.text(x, y, text, size=size, va="top", parse_math=False, **style)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Axes at a place measured from the corner below the title."""
        bottom = self.height - self.above - top - height
        place = (
            (EDGE + left) / self.width,
            bottom / self.height,
            width / self.width,
            height / self.height,
        )
        return self.figure.add_axes(place)


def drawable(text: str) -> str:
    """The text with control characters and those that the font lacks replaced."""
    font = font_manager.get_font(font_manager.findfont(FontProperties()))
    return "".join(c if c.isprintable() and font.get_char_index(ord(c)) else MISSING for c in text)


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """How wide a drawn text is, in inches."""
    font = FontProperties(size=size, weight=weight)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return width / POINTS


def wrapped(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """The text in lines of at most `width` inches; a word that is longer has its own line."""
    lines: list[str] = []
    for word in drawable(text).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, weight) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
