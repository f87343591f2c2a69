"""Scores in words: for each head the one that describes it best. A description, not a proof.

A score counts by how far it exceeds that of a head that looks at everything alike.

Measurement -> a Finding for each head
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from minigpt.heads.measure import Measurement
from minigpt.heads.scores import NUM_OFFSETS

PATTERNS = {  # score -> in a sentence, in a list; those most worth a look first
    "induction": ("looks at what followed this token before (induction)", "what followed before"),
    "duplicate": ("looks at the same token before", "same token before"),
    **{f"offset_{n}": (f"looks {n} tokens back", f"{n} tokens back") for n in range(2, NUM_OFFSETS)},
    "previous": ("looks at the previous token", "previous token"),
    "self": ("looks at itself", "itself"),
    "first": ("rests on the first token", "first token"),
}
OTHERWISE = {
    "entropy": ("looks broadly over the text", "everything"),
    "none": ("no single pattern", "mixed"),
    "short": ("too short a text to tell", "unknown"),
}
WORDS = PATTERNS | OTHERWISE
RANK = {score: rank for rank, score in enumerate(WORDS)}
DESCRIBES = 0.3  # the strength from which a score describes a head
BROAD = 0.75  # the entropy from which a head that nothing describes is called broad


@dataclass(frozen=True)
class Finding:
    """What describes a head best, with its value; `strength` is 0 for an even head, at most 1."""

    layer: int
    head: int
    score: str
    value: float
    strength: float

    @property
    def name(self) -> str:
        return f"L{self.layer}H{self.head}"

    @property
    def words(self) -> str:
        """As in: looks at the previous token, 0.93."""
        return f"{WORDS[self.score][0]}, {self.value:.2f}".removesuffix(", nan")

    @property
    def in_short(self) -> str:
        """As in: previous token 0.93."""
        return f"{WORDS[self.score][1]} {self.value:.2f}".removesuffix(" nan")


def describe(measurement: Measurement) -> list[Finding]:
    """A finding for each head, by layer and head."""
    num_layers, num_heads = measurement.shape
    return [
        describe_head(measurement, layer, head)
        for layer in range(num_layers)
        for head in range(num_heads)
    ]


def describe_head(measurement: Measurement, layer: int, head: int) -> Finding:
    values = {name: scores[layer, head].item() for name, scores in measurement.scores.items()}
    strengths = {name: strength(values[name], measurement.even[name]) for name in PATTERNS}
    if not math.isnan(values["first_on_repeats"]):  # a head at work there may rest elsewhere
        even = measurement.even["first_on_repeats"]
        at_work = strength(values["first_on_repeats"], even)
        strengths["first"] = min(strengths["first"], at_work)
    best = max(strengths, key=lambda name: strengths[name])
    if math.isnan(values["previous"]):
        return Finding(layer, head, "short", math.nan, 0)
    if strengths[best] >= DESCRIBES:
        return Finding(layer, head, best, values[best], strengths[best])
    if values["entropy"] >= BROAD:
        return Finding(layer, head, "entropy", values["entropy"], strengths[best])
    return Finding(layer, head, "none", math.nan, strengths[best])


def strength(value: float, even: float) -> float:
    """How far a score lies above an even head's: 0 equal or never asked, 1 as far as can be."""
    if math.isnan(value) or even >= 1:
        return 0.0
    return (value - even) / (1 - even)


def best_first(findings: Iterable[Finding]) -> list[Finding]:
    """Those that a score describes, the best described first; then the others."""
    return sorted(findings, key=lambda finding: (finding.score in OTHERWISE, -finding.strength))


def most_interesting(findings: Iterable[Finding]) -> Finding:
    """The head most worth a look: one that looks for content rather than for a place."""
    return min(findings, key=lambda finding: (RANK[finding.score], -finding.strength))


def in_short(findings: Sequence[Finding]) -> str:
    """All heads in one line, as in: 4 heads look at: previous token (3), itself (1)."""
    counts = Counter(WORDS[finding.score][1] for finding in findings)
    parts = [f"{words} ({number})" for words, number in counts.most_common()]
    return f"{len(findings)} heads look at: {', '.join(parts)}"
