"""Relations as pictures: which are found, beside what is found without looking, and what is lost.

Judgement -> Figure
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from minigpt.heads.evidence import Evidence
from minigpt.heads.judging import Judgement
from minigpt.heads.relations import RELATIONS
from minigpt.heads.role_plots import KINDS, titled
from minigpt.heads.roles import Role
from minigpt.heads.sheet import INK

WORDS = {"unlabelled": "no label for this", "looks": "looks, no effect"}
WORDS |= {"together": "resolves, with others"}
BASELINES = {"nearest": "o", "first": "s", "any": "D", "offset": "^"}
MOST_HEADS = 16  # columns of the picture of effects

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
