"""What heads do, as pictures: the map of all heads, the relations, what is lost without a head.

Every kind of role has a colour of the palette by Okabe & Ito (2008), which colour-blind readers can
tell apart, and a letter, so that no picture rests on colour alone.

Judgement -> Figure -> PNG
"""

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from minigpt.heads.evidence import Evidence
from minigpt.heads.judging import Judgement
from minigpt.heads.relations import RELATIONS
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
WORDS = {"unlabelled": "no label for this", "looks": "looks, no effect"}
WORDS |= {"together": "resolves, with others"}
BASELINES = {"nearest": "o", "first": "s", "any": "D", "offset": "^"}
MOST_ROLES = 14  # told in words beside the map
MOST_HEADS = 16  # columns of the picture of effects


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


# ------------------------------------------------------------------------------ relations


def relations(judgement: Judgement, subtitle: str = "") -> Figure:
    """For each relation the head that finds it best, beside what is found without looking."""
    found = sorted(judgement.evidence, key=lambda one: rank(judgement, one))
    names = [RELATIONS[one.relation].words for one in found]
    solved = [
        name
        for name, one in zip(names, found, strict=True)
        if label_at(judgement, one) in ("resolves", "together")
    ]
    title = f"{len(solved)} of {len(found)} relations are resolved by heads"
    title += f": {', '.join(solved)}" if solved else ""
    figure, axes = titled(9.5, 0.42 * len(found) + 2.2, title, subtitle)
    for row, one in enumerate(found):
        draw_relation(axes, judgement, one, row)
    axes.set_yticks(range(len(found)), names, size=9.5)
    axes.set(xlim=(0, 1.3), ylim=(len(found) - 0.5, -0.5))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_xlabel("share of questions where the head looks most at a right place", size=9.5)
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside lower left", ncols=6, fontsize=8.5,
                  frameon=False)  # fmt: skip
    return figure


def rank(judgement: Judgement, one: Evidence) -> tuple[int, float]:
    order = list(KINDS)
    return order.index(label_at(judgement, one)), -float(one.score.mean[one.best].nan_to_num(0))


def label_at(judgement: Judgement, one: Evidence) -> str:
    """What the best head of a relation is called for it."""
    role = next(r for r in judgement.roles if (r.layer, r.head) == one.best)
    kinds = [label.kind for label in role.labels if label.relation == one.relation]
    return kinds[0] if kinds else "unlabelled"


def draw_relation(axes: Axes, judgement: Judgement, one: Evidence, row: int) -> None:
    kind, head = label_at(judgement, one), one.best
    mean, low, high = (float(v[head]) for v in (one.score.mean, one.score.low, one.score.high))
    colour = KINDS[kind][0] if kind != "unlabelled" else "#DDDDDD"
    axes.barh(row, mean, 0.6, color=colour, edgecolor="#555555", linewidth=0.6)
    axes.errorbar(mean, row, xerr=[[mean - low], [high - mean]], color=INK, capsize=3, linewidth=1)
    for name, marker in BASELINES.items():
        label = {"any": "chance", "offset": "best offset"}.get(name, f"{name} candidate")
        axes.plot(one.baselines[name], row, marker, color="white", markeredgecolor=INK,
                  markersize=6, label=label, linestyle="none")  # fmt: skip
    axes.plot([one.twin, one.twin_high], [row, row], color="#555555", linewidth=1.2)
    axes.plot(one.twin, row, "x", color="#555555", markersize=6, label="untrained, to its bound")
    words = WORDS.get(kind, kind)
    axes.text(1.03, row, f"L{head[0]}H{head[1]} {words}", size=9, va="center", color=INK)


# ------------------------------------------------------------------------------ effects


def ablation(judgement: Judgement, subtitle: str = "") -> Figure:
    """What each relation's words lose without each head, in nats; the most needed heads."""
    found = [one for one in judgement.evidence if not one.there.mean.isnan().all()]
    table = np.stack([one.there.mean.flatten().numpy() for one in found])
    heads = sorted(judgement.roles, key=lambda role: -most_lost(judgement, role))[:MOST_HEADS]
    num_heads = judgement.effect.mean.shape[1]
    columns = [role.layer * num_heads + role.head for role in heads]
    everything = judgement.effect.mean.flatten().numpy()[columns]
    shown = np.vstack([table[:, columns], everything])
    names = [RELATIONS[one.relation].words for one in found] + ["all words"]
    width, height = max(2.8 + 0.62 * len(heads), 6.5), 0.36 * len(names) + 2.0
    figure, axes = titled(width, height, lost_title(heads, shown, names), subtitle)
    norm = PowerNorm(0.5, 0, max(float(np.nanmax(shown)), 0.1))
    axes.imshow(np.clip(shown, 0, None), cmap="Blues", norm=norm, aspect="auto")
    for row, values in enumerate(shown):
        for column, value in enumerate(values):
            if abs(value) >= 0.05:
                dark = value > 0.35 * np.nanmax(shown)
                axes.text(column, row, f"{value:.2f}", size=8, ha="center", va="center",
                          color="white" if dark else INK)  # fmt: skip
    axes.set_xticks(range(len(heads)), [role.name for role in heads], size=9)
    axes.set_yticks(range(len(names)), names, size=9)
    axes.set_xlabel("nats lost without the head; blank: under 0.05", size=9)
    return figure


def most_lost(judgement: Judgement, role: Role) -> float:
    head = role.layer, role.head
    lost = [float(one.there.mean[head]) for one in judgement.evidence]
    return max([value for value in lost if value == value], default=0.0)


def lost_title(heads: Sequence[Role], shown: np.ndarray, names: Sequence[str]) -> str:
    """As in: without L2H1, refrains lose most: 4.78 nats a word."""
    row, column = divmod(int(np.nanargmax(shown)), shown.shape[1])
    lost = f"{names[row]} lose most: {shown[row, column]:.2f} nats a word"
    return f"Without {heads[column].name}, {lost}"
