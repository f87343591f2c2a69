"""Where a head may be asked to look: the places in a text that a question is about.

Row i of a target marks the positions that answer the question at query i. A row without a mark
means that the question does not arise there. Nothing is marked after the query. Ids are `PADDING`
where a text has ended.

ids (B, T) -> targets (B, T, T)
"""

import torch
from torch import Tensor

PADDING = -1


def back(ids: Tensor, offset: int) -> Tensor:
    """The token `offset` places back; 0 is the query itself."""
    length = ids.size(1)
    diagonal = torch.ones(length, length, dtype=torch.bool, device=ids.device)
    diagonal = diagonal.tril(-offset).triu(-offset)
    return diagonal.expand(len(ids), -1, -1)


def near(ids: Tensor, farthest: int) -> Tensor:
    """All tokens from the query to `farthest` places back, where there are others before them."""
    length = ids.size(1)
    band = torch.ones(length, length, dtype=torch.bool, device=ids.device).tril().triu(-farthest)
    band[: farthest + 1] = False
    return band.expand(len(ids), -1, -1)


def first(ids: Tensor) -> Tensor:
    """The first token of the text, asked of all later ones."""
    targets = torch.zeros(*ids.shape, ids.size(1), dtype=torch.bool, device=ids.device)
    targets[:, 1:, :1] = True
    return targets


def earlier_same(ids: Tensor) -> Tensor:
    """Earlier places where the query's own token stands.

    >>> earlier_same(torch.tensor([[7, 5, 7]]))[0, 2].tolist()
    [True, False, False]
    """
    return (ids[:, :, None] == ids[:, None, :]).tril(-1)


def after_earlier_same(ids: Tensor) -> Tensor:
    """What followed at those places; not the query itself, although it does in "ll".

    >>> after_earlier_same(torch.tensor([[7, 5, 7]]))[0, 2].tolist()
    [False, True, False]
    """
    return earlier_same(ids).roll(1, dims=2).tril(-1)


def where_it_repeats(ids: Tensor) -> Tensor:
    """Of those the ones that equal what comes next, where the text does repeat itself.

    >>> where_it_repeats(torch.tensor([[7, 5, 7, 6, 7, 5]]))[0, 4].tolist()
    [False, True, False, False, False, False]
    """
    following = ids.roll(-1, dims=1)
    following[:, -1] = PADDING  # nothing comes after the last
    return after_earlier_same(ids) & (following[:, :, None] == ids[:, None, :])
