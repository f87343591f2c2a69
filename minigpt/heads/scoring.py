"""What a score is: one question to every query of a text, answered from attention weights.

A score is the mean over the queries where its question arises. Called, it gives a number per head,
its `by_query` the single answers. A head that has nothing to look for often rests on the first
token: `without_first` gives what to score instead to learn where it looks otherwise. Ids are
`PADDING` where a text has ended.

weights (L, B, H, T, T), ids (B, T) -> (L, H)
"""

import functools
import math
from collections.abc import Callable

import torch
from torch import Tensor

from minigpt.heads import targets

LEFTOVER = 1e-6  # a row with less beside the first token tells nothing


class Score:
    """A question to every query, NaN where it does not arise; see this module's docstring."""

    def __init__(self, ask: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.ask = ask  # (L, B, H, T, T), (B, T) -> (…, L, B, H, T)
        functools.update_wrapper(self, ask)

    def by_query(self, weights: Tensor, ids: Tensor) -> Tensor:
        """(L, B, H, T, T), (B, T) -> (…, L, B, H, T)."""
        padding = ids == targets.PADDING
        return self.ask(weights, ids).masked_fill(padding[:, None, :], math.nan)

    def __call__(self, weights: Tensor, ids: Tensor) -> Tensor:
        """(L, B, H, T, T), (B, T) -> (…, L, H); NaN for a question that never arises."""
        return self.by_query(weights, ids).nanmean(dim=(-3, -1))


def without_first(weights: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The same without the first token, rows summing to 1 again: T becomes T - 1.

    A row that has nothing else becomes NaN and is asked nothing.
    """
    others = weights[..., 1:, 1:]
    left = others.sum(-1, keepdim=True)
    return others / left.where(left > LEFTOVER, math.nan), ids[:, 1:]


def share_on(weights: Tensor, places: Tensor) -> Tensor:
    """How much of each query's attention is on the marked places; NaN where none is marked.

    (L, B, H, T, T), (B, T, T) -> (L, B, H, T)
    """
    text, query, key = places.nonzero(as_tuple=True)  # few of many, so only they are read
    marked = weights[:, text, :, query, key]  # (N, L, H)
    layers, texts, heads, length, _ = weights.shape
    share = weights.new_zeros(texts * length, layers, heads)
    share.index_add_(0, text * length + query, marked)
    share = share.view(texts, length, layers, heads).permute(2, 0, 3, 1)
    return share.masked_fill(~places.any(-1)[:, None, :], math.nan)


def except_first_query(answers: Tensor) -> Tensor:
    """The first query can look only at itself, so most questions don't arise there."""
    places = torch.arange(answers.size(-1), device=answers.device)
    return answers.masked_fill(places == 0, math.nan)
