"""Numbers as bars: how far back each head looks, and what is left to learn of each kind of word.

Measurement or summary -> Sheet -> PNG
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from minigpt.heads import marks
from minigpt.heads.marks import SMALL, line_height
from minigpt.heads.measure import Measurement
from minigpt.heads.plots import EDGE, titled
from minigpt.heads.scores import NUM_OFFSETS
from minigpt.heads.sheet import PALE, Sheet, text_width, wrapped

FOCUS = 0.4  # share of attention from which a head is said to look at one distance

# ------------------------------------------------------------------------------ offsets


def offsets(measurement: Measurement, subtitle: str = "") -> Sheet:
    """Small bars for each head: the share of its attention 0, 1, 2 … 15 tokens back."""
    num_layers, num_heads = measurement.shape
    table = np.stack([measurement.scores[f"offset_{n}"].numpy() for n in range(NUM_OFFSETS)], -1)
    table = np.nan_to_num(table)  # (L, H, 16)
    most = max(math.ceil(10 * table.max()) / 10, 0.1)
    title = offsets_title(table, num_layers * num_heads - len(measurement.pruned))
    wide = min(max(10 / num_heads, 0.95), 2.4)
    high = 0.45 * wide + 0.32
    words = "From left to right: how much a head looks at the token itself (0), 1, 2 … "
    words += f"{NUM_OFFSETS - 1} tokens back. A full box is {most:.0%} of its attention; striped: "
    lines = wrapped(words + "the most, also told above.", num_heads * wide, SMALL)
    height = num_layers * high + 0.35 + len(lines) * line_height()
    sheet, top = titled(num_heads * wide, height, title, subtitle)
    for layer, head in np.ndindex(num_layers, num_heads):
        if (layer, head) in measurement.pruned:
            continue
        x, y = EDGE + head * wide, top + layer * high
        draw_profile(sheet, f"L{layer}H{head}", table[layer, head], most, (x, y, wide - 0.12, high))
    for head in range(num_heads):
        draw_ticks(sheet, EDGE + head * wide, top + num_layers * high, wide - 0.12)
    for row, line in enumerate(lines):
        sheet.text(line, EDGE, top + num_layers * high + 0.35 + row * line_height(), SMALL)
    return sheet


def offsets_title(table: np.ndarray, number: int) -> str:
    """As in: L1H2 gives 97% of its attention to the token before; 3 of 12 heads give …"""
    layer, head, back = np.unravel_index(int(table.argmax()), table.shape)
    where = {0: "the token itself", 1: "the token before"}.get(int(back), f"{back} tokens back")
    near = int((table.max(-1) >= FOCUS).sum())
    gives = f"give{'s' * (near == 1)} {FOCUS:.0%} or more to one distance"
    most = f"L{layer}H{head} gives {table.max():.0%} of its attention to {where}"
    return f"{most}; {near} of {number} heads {gives}"


Box = tuple[float, float, float, float]  # left, top, width, height in inches


def draw_profile(sheet: Sheet, name: str, shares: np.ndarray, most: float, place: Box) -> None:
    """One head's bars (16,) in a box, its name and its highest bar in words above."""
    x, y, width, height = place
    size, best = 8.0 if width > 1.2 else 6.5, int(shares.argmax())
    sheet.text(name, x, y + 0.18, size, weight="bold")
    peak = f"{best} back {shares[best]:.0%}" if width > 1.2 else f"{best}: {shares[best]:.0%}"
    sheet.text(peak, x + width, y + 0.18, size, ha="right", color=PALE)
    bar, room, bottom = width / len(shares), height - 0.34, y + height - 0.11
    marks.box(sheet, x, bottom - room, width, room, facecolor="#F7F7F7", edgecolor=marks.RULE)
    tall = room * shares / most
    bars = [Rectangle((x + back * bar, bottom), bar, -tall[back]) for back in range(len(shares))]
    sheet.axes.add_collection(PatchCollection(bars, facecolor=marks.BLUE, lw=0))
    place = x + best * bar, bottom - tall[best], bar, tall[best]
    marks.box(sheet, *place, facecolor=marks.ORANGE, hatch="////", linewidth=0.3)


def draw_ticks(sheet: Sheet, x: float, y: float, width: float) -> None:
    for back in range(0, NUM_OFFSETS, 5):
        place = x + (back + 0.5) * width / NUM_OFFSETS
        sheet.text(str(back), place, y, 6.5, ha="center", va="center", color=PALE)


# ------------------------------------------------------------------------------ what is left

Slots = dict[str, dict[str, float]]  # kind of word -> loss, floor (nats), share of all words
LOSS, PART, SLOT_ROW = 4.4, 4.6, 0.24  # inches, with the words beside the bars
ABOVE: dict[str, Any] = {"facecolor": marks.VERMILION, "hatch": "/////", "linewidth": 0.3}
MOST_SLOTS = 24


def loss_floor(slots: Slots, subtitle: str = "") -> Sheet:
    """For each kind of word its loss over the exact floor, those first where most is left.

    Left the loss itself, right its excess times the share of such words: the parts of the whole.
    """
    parts = {name: part_of(one) for name, one in slots.items()}
    order = sorted(parts, key=lambda name: -parts[name])[:MOST_SLOTS]
    names = max(text_width(name, 9) for name in order) + 0.2
    left, right = EDGE + names, EDGE + names + LOSS
    bottom = (len(order) + 1) * SLOT_ROW
    title = floor_title(slots, parts)
    sheet, top = titled(names + LOSS + PART, bottom + 0.35, title, subtitle)
    for x, words in (
        (left, "nats a word: exact floor + above it"),
        (right, "part of what is left"),
    ):
        sheet.text(words, x, top + 0.12, SMALL, color=PALE, va="center_baseline")
    longest = max(slots[name]["loss"] for name in order)
    for row, name in enumerate(order):
        y = top + (row + 1.5) * SLOT_ROW
        sheet.text(name, left - 0.1, y, 9, ha="right", va="center_baseline")
        draw_loss(sheet, slots[name], left, y, (LOSS - 1.3) / longest)
        draw_part(sheet, slots[name], right, y, (PART - 2.2) / max(*parts.values(), 1e-9))
    sheet.text(floor_note(parts, order), EDGE, top + bottom + 0.25, SMALL, color=PALE)
    return sheet


def floor_note(parts: dict[str, float], shown: Sequence[str]) -> str:
    words = "A part: nats above the floor × share of such words."
    rest = [part for name, part in parts.items() if name not in shown]
    return words + (f" Not shown: {len(rest)}, together {sum(rest):.4f}." if rest else "")


def part_of(slot: dict[str, float]) -> float:
    """Nats above the floor, spread over all words."""
    return (slot["loss"] - slot["floor"]) * slot["share"]


def floor_title(slots: Slots, parts: dict[str, float]) -> str:
    """As in: the largest gap is “pattern”: 23% of the 0.017 nats a word left above the floor."""
    worst, whole = max(parts, key=lambda name: parts[name]), sum(parts.values())
    if parts[worst] <= 0:
        return "No kind of word is above its floor"
    gap = slots[worst]["loss"] - slots[worst]["floor"]
    share = f"{parts[worst] / whole:.0%} of the {whole:.3f} nats a word above the floor"
    on = f"{gap:+.3f} on {slots[worst]['share']:.1%} of words"
    return f"The largest gap is “{worst}”: {share} ({on})"


def draw_loss(sheet: Sheet, slot: dict[str, float], x: float, y: float, scale: float) -> None:
    """The floor in grey, what is above it striped."""
    floor, loss = slot["floor"] * scale, slot["loss"] * scale
    marks.box(sheet, x, y - 0.07, floor, 0.14)
    marks.box(sheet, x + floor, y - 0.07, max(loss - floor, 0.01), 0.14, **ABOVE)
    words = f"{slot['floor']:.2f} {slot['loss'] - slot['floor']:+.3f}"
    sheet.text(words, x + max(floor, loss) + 0.07, y, SMALL, va="center_baseline", color=PALE)


def draw_part(sheet: Sheet, slot: dict[str, float], x: float, y: float, scale: float) -> None:
    wide = max(part_of(slot), 0) * scale
    marks.box(sheet, x, y - 0.07, wide, 0.14, **ABOVE)
    words = f"{part_of(slot):.4f}, on {slot['share']:.1%} of all words"
    sheet.text(words, x + wide + 0.07, y, SMALL, va="center_baseline", color=PALE)
