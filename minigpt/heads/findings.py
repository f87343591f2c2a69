"""Scores in words: for each head the one that stands out most. A description, not a proof.

A score stands out by how far it lies above that of a head that looks at everything alike.

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
    **{f"offset_{n}": (f"looks {n} tokens back", f"{n} back") for n in range(2, NUM_OFFSETS)},
    "previous": ("looks at the previous token", "previous token"),
    "self": ("looks at itself", "itself"),
    "first": ("rests on the first token", "first token"),
    "nearby": ("looks at itself and the 3 tokens before", "nearby tokens"),
}
RANK = {score: rank for rank, score in enumerate(PATTERNS)}
DESCRIBES = 0.3  # the strength from which a score describes a head
FEWEST = 8  # queries that a score must be the mean of to describe a head
BROAD = 0.75  # the entropy from which a head that no score describes is called broad


@dataclass(frozen=True)
class Finding:
    """The score of a head that stands out most; `strength` is 0 for an even head, at most 1.

    Of a text too short to tell, value and entropy are NaN.
    """

    layer: int
    head: int
    score: str
    value: float
    strength: float
    entropy: float

    @property
    def name(self) -> str:
        return f"L{self.layer}H{self.head}"

    @property
    def clear(self) -> bool:
        """Whether the score describes the head."""
        return self.strength >= DESCRIBES

    @property
    def leans(self) -> bool:
        """Whether the score says at least something of a head that it does not describe."""
        return self.strength >= DESCRIBES / 3

    @property
    def kind(self) -> str:
        """As in: previous token."""
        if self.clear:
            return PATTERNS[self.score][1]
        if math.isnan(self.entropy):
            return "unknown"
        return "everything" if self.entropy >= BROAD else "mixed"

    @property
    def in_short(self) -> str:
        """As in: previous token 0.93."""
        if self.clear:
            return f"{self.kind} {self.value:.2f}"
        if self.kind == "mixed" and self.leans:
            return f"mixed; most {PATTERNS[self.score][1]} {self.value:.2f}"
        return self.kind

    @property
    def words(self) -> str:
        """As in: looks at the previous token, 0.93."""
        sentence, short = PATTERNS[self.score]
        if self.clear:
            return f"{sentence}, {self.value:.2f}"
        leaning = f"; most: {short}, {self.value:.2f}" if self.leans else ""
        return {
            "mixed": "no single pattern" + leaning,
            "everything": f"looks broadly over the text, entropy {self.entropy:.2f}",
            "unknown": "too short a text to tell",
        }[self.kind]


def describe(measurement: Measurement) -> list[Finding]:
    """A finding for each head by layer and place, but for those that were pruned."""
    num_layers, num_heads = measurement.shape
    return [
        describe_head(measurement, layer, head)
        for layer in range(num_layers)
        for head in range(num_heads)
        if (layer, head) not in measurement.pruned
    ]


def describe_head(measurement: Measurement, layer: int, head: int) -> Finding:
    values = {name: scores[layer, head].item() for name, scores in measurement.scores.items()}
    strengths = {
        name: strength(values[name], measurement.even[name])
        for name in (*PATTERNS, "first_on_repeats")
        if measurement.asked[name] >= FEWEST
    }
    if "first_on_repeats" in strengths:  # a head at work there may rest elsewhere
        strengths["first"] = min(strengths["first"], strengths.pop("first_on_repeats"))
    near = strengths.pop("nearby", 0.0)
    best = max(strengths, key=lambda name: strengths[name], default=None)
    if best is None:
        return Finding(layer, head, "first", math.nan, 0, math.nan)
    if strengths[best] < DESCRIBES <= near:  # a wide net, cast where no narrow one catches
        return Finding(layer, head, "nearby", values["nearby"], near, values["entropy"])
    return Finding(layer, head, best, values[best], strengths[best], values["entropy"])


def strength(value: float, even: float) -> float:
    """How far a score lies above an even head's: 0 equal, 1 as far as can be."""
    return (value - even) / (1 - even) if even < 1 else 0.0


def best_first(findings: Iterable[Finding]) -> list[Finding]:
    """The best described head first, those that are just near-sighted after the others."""
    return sorted(findings, key=lambda f: (not f.clear, f.score == "nearby", -f.strength))


def most_interesting(findings: Iterable[Finding]) -> Finding:
    """The head most worth a look: one that looks for content rather than for a place."""
    return min(findings, key=lambda f: (not f.clear, RANK[f.score], -f.strength))


def in_short(findings: Sequence[Finding]) -> str:
    """All heads in one line, as in: 4 heads look at: previous token (3), itself (1)."""
    counts = Counter(finding.kind for finding in best_first(findings))
    parts = [f"{kind} ({number})" for kind, number in counts.items()]
    return f"{len(findings)} heads look at: {', '.join(parts)}"
