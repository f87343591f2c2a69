"""Every score of every head over many texts, a few texts at a time.

model, texts -> Measurement
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from minigpt.generation import device_of
from minigpt.heads.capture import at_once, capture_attention, pad
from minigpt.heads.scoring import Score
from minigpt.heads.tally import SCORES, SCORES_ON_RANDOM, SCORES_WITH_FIRST, Tally
from minigpt.model import GPT

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
