"""What heads do, as pictures: the map of all heads, the relations, what is lost without a head.

Every kind of role has a colour of the palette by Okabe & Ito (2008), which colour-blind readers can
tell apart, and a letter, so that no picture rests on colour alone.

Judgement -> Figure -> PNG
"""

import io
import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from minigpt.heads.judging import Judgement
from minigpt.heads.role_lines import count, telling
from minigpt.heads.roles import Role
from minigpt.heads.sheet import DPI, INK, PALE, wrapped

KINDS = {  # kind -> colour, letter, pattern
    "resolves": ("#0072B2", "R", ""),
    "together": ("#0072B2", "T", "oo"),
    "induction": ("#009E73", "I", "//"),
    "duplicate": ("#56B4E9", "D", "\\\\"),
    "positional": ("#E69F00", "P", ".."),
    "mostly positional": ("#F0E442", "p", ".."),
    "broad": ("#CC79A7", "B", "xx"),
    "resting": ("#BBBBBB", "S", "--"),
    "looks": ("#D55E00", "L", "++"),
    "needed": ("#8C6D46", "N", "||"),
    "unlabelled": ("#FFFFFF", "", ""),
}
DARK = ("resolves", "together", "induction", "looks", "needed")  # letters on these are white
MOST_ROLES = 14  # told in words beside the map


def png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=DPI, metadata={"Software": None})
    return picture.getvalue()


def titled(width: float, height: float, title: str, subtitle: str = "") -> tuple[Figure, Axes]:
    """A figure of that many inches with a title that is wrapped to its width."""
    figure = Figure((width, height), facecolor="white", layout="constrained")
    lines = wrapped(title, width - 0.6, 13, "bold")
    figure.suptitle("\n".join(lines), size=13, weight="bold", color=INK, x=0.02, ha="left")
    axes = figure.add_subplot()
    if subtitle:
        axes.set_title("\n".join(wrapped(subtitle, width - 0.8, 9)), size=9, color=PALE, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def kind_of(role: Role) -> str:
    return role.labels[0].kind if role.labels else "unlabelled"


# ------------------------------------------------------------------------------ all heads


def head_map(judgement: Judgement, subtitle: str = "") -> Figure:
    """A square for each head: its kind by colour and letter, its size by what is lost without."""
    num_layers, num_heads = judgement.effect.mean.shape
    cell = min(1.1, max(0.45, 7 / num_heads))
    told = sorted((role for role in judgement.roles if role.labels), key=telling)[:MOST_ROLES]
    words = [f"{role.name}  {role.short}" for role in told]
    lines = [line for text in words for line in wrapped(text, 3.9, 8.5)]
    height = max(num_layers * cell, 0.19 * len(lines)) + 2.2
    figure, axes = titled(num_heads * cell + 6.2, height, count(judgement.roles), subtitle)
    largest = max(float(judgement.effect.mean.nan_to_num(0).max()), 1e-9)
    for role in judgement.roles:
        lost = max(float(judgement.effect.mean[role.layer, role.head]), 0)
        draw_head(axes, role, 0.35 + 0.55 * math.sqrt(lost / largest), cell)
    axes.set(xlim=(-0.5, num_heads - 0.5), ylim=(num_layers - 0.5, -0.5), aspect="equal")
    axes.set_xticks(range(num_heads), [f"H{head}" for head in range(num_heads)], size=9)
    axes.set_yticks(range(num_layers), [f"L{layer}" for layer in range(num_layers)], size=9)
    axes.text(num_heads - 0.3, -0.45, "\n".join(lines), size=8.5, va="top", color=INK)
    present = [kind for kind in KINDS if kind in {kind_of(role) for role in judgement.roles}]
    figure.legend(
        handles=[patch(kind) for kind in present], loc="outside lower left", ncols=3, fontsize=8.5,
        frameon=False, title="larger: more is lost without it", title_fontsize=8.5,
        alignment="left",
    )  # fmt: skip
    return figure


def draw_head(axes: Axes, role: Role, side: float, cell: float) -> None:
    colour, letter, pattern = KINDS[kind_of(role)]
    corner = role.head - side / 2, role.layer - side / 2
    style: dict[str, Any] = {
        "facecolor": colour,
        "edgecolor": "#555555",
        "hatch": pattern,
        "linewidth": 0.8,
    }
    axes.add_patch(Rectangle(corner, side, side, **style))
    size = max(5.0, 26 * cell * side / 1.1)
    colour = "white" if kind_of(role) in DARK else INK
    box = {"facecolor": KINDS[kind_of(role)][0], "edgecolor": "none", "pad": 0.8}
    if letter:
        axes.text(role.head, role.layer, letter, size=size, ha="center", va="center",
                  color=colour, weight="bold", bbox=box)  # fmt: skip


def patch(kind: str) -> Patch:
    colour, letter, pattern = KINDS[kind]
    name = f"{letter}  {kind}" if letter else kind
    return Patch(facecolor=colour, edgecolor="#555555", hatch=pattern, label=name)
