"""How far counting goes: the loss of models that only know the last few tokens.

Each order leans on the one below where it has seen little. Source: Witten & Bell 1991, in the
form of Chen & Goodman 1998.

ids -> nats per token, for each order
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

Context = tuple[int, ...]


class Counts:
    """What followed every context of up to `order` - 1 tokens."""

    def __init__(self, ids: Sequence[int], order: int, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.followers: dict[Context, Counter[int]] = defaultdict(Counter)
        for place, id in enumerate(ids):
            for length in range(min(order, place + 1)):
                self.followers[tuple(ids[place - length : place])][id] += 1

    def probability(self, id: int, context: Context) -> float:
        lower = self.probability(id, context[1:]) if context else 1 / self.vocab_size
        followers = self.followers.get(context)
        if followers is None:
            return lower
        kinds = len(followers)
        return (followers[id] + kinds * lower) / (followers.total() + kinds)


def ngram_losses(
    train: Sequence[int], val: Sequence[int], vocab_size: int, orders: Sequence[int] = (1, 2, 3)
) -> dict[int, float]:
    """The mean loss on `val` of each order, counted on `train`."""
    counts = Counts(train, max(orders), vocab_size)
    return {
        order: -sum(
            math.log(counts.probability(id, tuple(val[max(place - order + 1, 0) : place])))
            for place, id in enumerate(val)
        )
        / len(val)
        for order in orders
    }
