"""How it came about, as pictures: births over the training, losses against the floor, offsets.

history, summary, scores -> Figure
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from minigpt.heads.history import Record, birth
from minigpt.heads.judging import Judgement
from minigpt.heads.measure import Measurement
from minigpt.heads.relations import RELATIONS
from minigpt.heads.role_plots import titled
from minigpt.heads.scores import NUM_OFFSETS
from minigpt.heads.sheet import INK, PALE, wrapped

LOSS, SCORE, BIRTH = "#0072B2", "#D55E00", "#555555"
MOST_SLOTS = 16


def births(judgement: Judgement, history: Sequence[Record], subtitle: str = "") -> Figure | None:
    """For each relation that a head resolves: its loss, the head's score, and when it was born.

    None where nothing is resolved, or nothing was recorded.
    """
    born = [
        (label.relation, (role.layer, role.head), role.name)
        for role in judgement.roles
        for label in role.labels
        if label.kind in ("resolves", "together") and label.relation
    ]
    if not born or not history:
        return None
    columns = min(3, len(born))
    rows = -(-len(born) // columns)
    figure = Figure(
        (3.6 * columns + 0.6, 2.6 * rows + 1.2), facecolor="white", layout="constrained"
    )
    lines = wrapped(births_title(history, born), 3.6 * columns, 13, "bold")
    figure.suptitle("\n".join(lines), size=13, weight="bold", color=INK, x=0.02, ha="left")
    for place, (relation, head, name) in enumerate(born):
        axes = figure.add_subplot(rows, columns, place + 1)
        draw_birth(axes, history, relation, head, name)
    figure.supxlabel(f"steps; {subtitle}" if subtitle else "steps", size=9, color=PALE)
    return figure


def births_title(
    history: Sequence[Record], born: Sequence[tuple[str, tuple[int, int], str]]
) -> str:
    steps = [(birth(history, relation, head) or 0, relation, name) for relation, head, name in born]
    known = sorted(step for step in steps if step[0])
    if not known:
        return "No birth is certain on the few stories that were recorded"
    first, last = known[0], known[-1]
    title = f"{RELATIONS[first[1]].words} first: {first[2]} resolves them from step {first[0]:,}"
    if last != first:
        title += f"; {RELATIONS[last[1]].words} last, from step {last[0]:,}"
    return title[0].upper() + title[1:]


def draw_birth(
    axes: Axes,
    history: Sequence[Record],
    relation: str,
    head: tuple[int, int],
    name: str,
) -> None:
    records = [record for record in history if relation in record["relations"]]
    steps = [record["step"] for record in records]
    found = [record["relations"][relation] for record in records]
    axes.plot(steps, [one["loss"] for one in found], color=LOSS, marker=".")
    if found[0].get("floor") is not None:
        axes.axhline(found[0]["floor"], color=LOSS, linestyle=":", linewidth=1)
    axes.set_ylabel("loss, nats (· floor)", size=8, color=LOSS)
    axes.set(xscale="log", ylim=(0, None))
    right = axes.twinx()
    layer, place = head
    score = [one["score"][layer][place] for one in found]
    low = [one["low"][layer][place] for one in found]
    right.plot(steps, score, color=SCORE, linestyle="--", marker="x", markersize=4)
    right.fill_between(steps, low, score, color=SCORE, alpha=0.15)
    right.set_ylim(0, 1.02)
    right.set_ylabel("right looks (-- score)", size=8, color=SCORE)
    step = birth(history, relation, head)
    if step:
        axes.axvline(step, color=BIRTH, linewidth=1)
    when = f"born at step {step:,}" if step else "no certain birth"
    axes.set_title(f"{name}: {RELATIONS[relation].words}\n{when}", size=9, color=INK)
    axes.tick_params(labelsize=8)
    right.tick_params(labelsize=8)


# ------------------------------------------------------------------------------ losses


def loss_floor(slots: dict[str, dict[str, float]], subtitle: str = "") -> Figure | None:
    """The kinds of words where most is left to learn: loss, exact floor, how much it weighs."""
    if not slots:
        return None
    gaps = {name: (one["loss"] - one["floor"]) * one["share"] for name, one in slots.items()}
    worst = sorted(gaps, key=lambda name: -gaps[name])[:MOST_SLOTS]
    total = sum(gaps.values())
    title = (
        f"{total:.3f} nats a word above the floor; most of it in “{worst[0]}”: {gaps[worst[0]]:.3f}"
    )
    figure, axes = titled(9, 0.32 * len(worst) + 1.8, title, subtitle)
    floors = [slots[name]["floor"] for name in worst]
    excess = [max(slots[name]["loss"] - slots[name]["floor"], 0) for name in worst]
    axes.barh(worst, floors, color="#CCCCCC", label="exact floor")
    axes.barh(
        worst, excess, left=floors, color=SCORE, hatch="//", edgecolor="white", label="above it"
    )
    for row, name in enumerate(worst):
        words = f"+{excess[row]:.3f} on {slots[name]['share']:.1%} of words"
        axes.text(floors[row] + excess[row] + 0.05, row, words, size=8, va="center", color=INK)
    axes.invert_yaxis()
    axes.set_xlim(0, max(f + e for f, e in zip(floors, excess, strict=True)) * 1.35)
    axes.set_xlabel("loss on this kind of word, nats", size=9)
    axes.legend(fontsize=9, frameon=False, loc="upper right")
    return figure


# ------------------------------------------------------------------------------ offsets


def offsets(measurement: Measurement, subtitle: str = "") -> Figure:
    """How much each head looks 0, 1, 2 … 15 tokens back: a row for each head."""
    num_layers, num_heads = measurement.shape
    names = [f"L{layer}H{head}" for layer in range(num_layers) for head in range(num_heads)]
    table = np.stack(
        [measurement.scores[f"offset_{back}"].flatten().numpy() for back in range(NUM_OFFSETS)], 1
    )
    place = np.unravel_index(np.nanargmax(table), table.shape)
    title = (
        f"{names[place[0]]} looks {place[1]} back most of all: {table[place]:.0%} of its attention"
    )
    figure, axes = titled(8, 0.22 * len(names) + 2.0, title, subtitle)
    axes.imshow(table, cmap="Blues", norm=PowerNorm(0.5, 0, 1), aspect="auto")
    for row, column in np.argwhere(table >= 0.2):
        axes.text(column, row, f"{table[row, column]:.2f}".lstrip("0"), size=7, ha="center",
                  va="center", color="white" if table[row, column] > 0.4 else INK)  # fmt: skip
    axes.set_yticks(range(len(names)), names, size=8)
    axes.set_xticks(range(NUM_OFFSETS), map(str, range(NUM_OFFSETS)), size=8)
    axes.set_xlabel("tokens back (0: itself)", size=9)
    return figure
