"""Every score of every head over many texts, a few texts at a time.

model, texts -> Measurement
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from minigpt.generate import device_of
from minigpt.heads import scores
from minigpt.heads.capture import at_once, capture_attention, pad
from minigpt.heads.scores import Score
from minigpt.model import GPT

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

NUM_RANDOM, LONGEST_RANDOM = 32, 32

Batch = list[Sequence[int]]
Work = tuple[dict[str, Score], Batch]
Progress = Callable[[Sequence[Work]], Iterable[Work]]


@dataclass(frozen=True)
class Measurement:
    """Scores by name, each (L, H); NaN where a question never arose.

    `even` are the scores of a head that looks alike at all it may see, which a score must exceed
    to mean anything; `asked` says of how many queries each score is the mean.
    """

    scores: dict[str, Tensor]
    even: dict[str, float]
    asked: dict[str, int]
    num_texts: int
    num_tokens: int
    pruned: frozenset[tuple[int, int]] = frozenset()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of layers, number of heads in each."""
        num_layers, num_heads = self.scores["first"].shape
        return num_layers, num_heads


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
            weights, ids = scores.without_first(weights, ids)
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


def measure(
    model: GPT, texts: Sequence[Sequence[int]], *, seed: int = 0, progress: Progress = iter
) -> Measurement:
    """Scores all heads on texts of at least one token each, and on random ones that repeat.

    `progress` wraps the batches of work, for a bar.
    """
    real, even = Tally(), Tally()
    for questions, batch in progress(plan(model, texts, seed)):
        ids = pad(batch).to(device_of(model))
        real.ask(questions, capture_attention(model, ids), ids)
        even.ask(questions, even_weights(ids), ids)
    baseline = {name: mean.item() for name, mean in even.means().items()}
    num_tokens = sum(map(len, texts))
    layers, all_heads = range(model.config.num_layers), range(model.config.num_heads)
    pruned = frozenset(
        (layer, head)
        for layer in layers
        for head in all_heads
        if head not in model.config.heads_in(layer)
    )
    return Measurement(real.means(), baseline, real.asked(), len(texts), num_tokens, pruned)


def plan(model: GPT, texts: Sequence[Sequence[int]], seed: int) -> list[Work]:
    """The batches, each with what to ask of it."""
    repeated = random_repeats(texts, model.config.context_length, seed)
    on_texts: list[Work] = [(SCORES | SCORES_WITH_FIRST, b) for b in batches(model, texts)]
    return on_texts + [(SCORES_ON_RANDOM, b) for b in batches(model, repeated)]


def batches(model: GPT, texts: Sequence[Sequence[int]]) -> Iterator[Batch]:
    """As many texts at once as fit."""
    number = at_once(model, max(map(len, texts), default=1))
    for start in range(0, len(texts), number):
        yield list(texts[start : start + number])


def even_weights(ids: Tensor) -> Tensor:
    """A head that looks at every token so far alike: ids (B, T) -> (1, B, 1, T, T)."""
    batch, length = ids.shape
    weights = torch.ones(length, length, device=ids.device).tril()
    return (weights / weights.sum(-1, keepdim=True)).expand(1, batch, 1, -1, -1)


def random_repeats(
    texts: Sequence[Sequence[int]], context_length: int, seed: int
) -> list[list[int]]:
    """Random tokens of these texts, twice in the same order, each after a text's first token.

    Whatever a head finds in them it finds by their order, not by their sense. Where texts or
    context are too short for that, nothing repeats. Source: Olsson et al. 2022.
    """
    first = texts[0][0]
    pool = sorted({id for text in texts for id in text} - {first})
    length = min((context_length - 1) // 2, len(pool), LONGEST_RANDOM)
    if length < 2:
        return [[first]]
    draw = random.Random(seed)
    halves = (draw.sample(pool, length) for _ in range(NUM_RANDOM))
    return [[first, *half, *half] for half in halves]
