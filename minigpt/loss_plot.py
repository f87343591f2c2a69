"""The picture of a training: how the loss fell.

metrics of a run -> loss.png
"""

import io
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from minigpt import storage

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#555555"  # told apart by colour-blind readers too


def draw_loss(records: list[dict[str, Any]], path: Path, title: str, floor: float | None) -> None:
    """Draws training and validation loss over the steps, and the exact floor where it is known."""
    figure = Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
    axes = figure.subplots()
    steps, losses = curve(records, "train_loss")
    axes.plot(steps, losses, color=BLUE, alpha=0.25, linewidth=1)
    axes.plot(steps, smoothed(losses), color=BLUE, linewidth=1.5, label="training (smoothed)")
    steps, losses = curve(records, "val_loss")
    axes.plot(steps, losses, "o-", color=ORANGE, markersize=4, label="validation")
    if floor is not None:
        axes.axhline(floor, color=GREY, linestyle="--", label=f"exact floor {floor:.3f}")
    axes.set(title=title, xlabel="step", ylabel="loss (nats per token)")
    show_the_end(axes, records)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    storage.write_bytes(path, picture.getvalue())


def show_the_end(axes: Axes, records: list[dict[str, Any]]) -> None:
    """Lets the steep first steps leave the picture, so that the long rest can be seen."""
    _, losses = curve(records, "train_loss")
    if len(losses) > 20:
        after_the_start = losses[len(losses) // 20 :]
        axes.set_ylim(top=after_the_start.max() + 0.05 * np.ptp(after_the_start))


def curve(records: list[dict[str, Any]], key: str) -> tuple[np.ndarray, np.ndarray]:
    points = [(record["step"], record[key]) for record in records if key in record]
    array = np.array(points, dtype=float).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def smoothed(values: np.ndarray, share: float = 0.05) -> np.ndarray:
    """A running mean over a share of all points, centred, shorter at both ends."""
    half = int(len(values) * share / 2)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.maximum(np.arange(len(values)) - half, 0)
    last = np.minimum(np.arange(len(values)) + half + 1, len(values))
    return (sums[last] - sums[first]) / (last - first)
