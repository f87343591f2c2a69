"""Means of many scores over the queries of many texts, a few texts at a time.

scores, weights (L, B, H, T, T), ids (B, T) -> means (L, H) by name
"""

import torch
from torch import Tensor

from minigpt.heads import scores
from minigpt.heads.scoring import Score, without_first

SCORES: dict[str, Score] = {
    "previous": scores.previous_token,
    "self": scores.itself,
    "nearby": scores.nearby,
    "duplicate": scores.duplicate,
    "induction": scores.induction,
    "prefix_matching": scores.prefix_matching,
    "entropy": scores.entropy,
    "distance": scores.distance,
    "confidence": scores.confidence,
    "peak": scores.peak_profile,
}
SCORES_WITH_FIRST: dict[str, Score] = {
    "first": scores.first_token,
    "first_on_repeats": scores.first_token_on_repeats,
    "rests": scores.rests,
    "first_elsewhere": scores.first_token_elsewhere,
    "offset": scores.offset_profile,
}
SCORES_ON_RANDOM = {"induction_random": scores.induction}
WITHOUT_FIRST = "_without_first"


class Tally:
    """Means over the queries of many texts."""

    def __init__(self) -> None:
        self.sums: dict[str, Tensor] = {}
        self.counts: dict[str, Tensor] = {}

    def ask(self, questions: dict[str, Score], weights: Tensor, ids: Tensor) -> None:
        """Takes the answers on some texts in, with and without the first token."""
        for name, score in questions.items():
            self.add(name, score.by_query(weights, ids))
        alone = ids.size(1) == 1  # without the first token nothing is left to ask
        if not alone:
            weights, ids = without_first(weights, ids)
        for name in questions.keys() - SCORES_WITH_FIRST.keys():
            answers = questions[name].by_query(weights, ids)
            self.add(name + WITHOUT_FIRST, answers * torch.nan if alone else answers)

    def add(self, name: str, answers: Tensor) -> None:
        total = answers.double().nansum((-3, -1)).cpu()
        count = (~answers.isnan()).sum((-3, -1)).cpu()
        self.sums[name] = self.sums.get(name, 0) + total
        self.counts[name] = self.counts.get(name, 0) + count

    def means(self) -> dict[str, Tensor]:
        """The scores (L, H), a profile as one score for each offset, a peak as its place."""
        found: dict[str, Tensor] = {}
        for name in sorted(self.sums):
            mean = self.sums[name] / self.counts[name]
            if name.startswith("peak"):
                share, place = mean.max(0)
                found[name.replace("peak", "positional")] = share
                place = place.double().where(~share.isnan(), torch.nan)
                found[name.replace("peak", "positional_offset")] = place
            else:
                found |= spread(name, mean)
        return found

    def asked(self) -> dict[str, int]:
        """How many queries each score is the mean of, by the names of `means`."""
        counts: dict[str, int] = {}
        for name in sorted(self.counts):
            if name.startswith("peak"):
                number = int(self.counts[name].max())
                counts[name.replace("peak", "positional")] = number
                counts[name.replace("peak", "positional_offset")] = number
            else:
                counts |= {n: int(c.max()) for n, c in spread(name, self.counts[name]).items()}
        return counts


def spread(name: str, values: Tensor) -> dict[str, Tensor]:
    """A profile (16, L, H) as one entry for each offset, a score (L, H) as it is."""
    if values.ndim == 2:
        return {name: values}
    return {f"{name}_{offset}": row for offset, row in enumerate(values)}
