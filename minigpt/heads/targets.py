"""Where a head may be asked to look: the places in a text that a question is about.

Row i of a target marks the positions that answer the question at query i. A row without a mark
means that the question does not arise there. Nothing is marked after the query.

ids (B, T) -> targets (B, T, T)
"""

import torch
from torch import Tensor


def back(ids: Tensor, offset: int) -> Tensor:
    """The token `offset` places back; 0 is the query itself."""
    length = ids.size(1)
    diagonal = torch.ones(length, length, dtype=torch.bool, device=ids.device)
    diagonal = diagonal.tril(-offset).triu(-offset)
    return diagonal.expand(len(ids), -1, -1)


def first(ids: Tensor) -> Tensor:
    """The first token of the text, asked of all later ones."""
    targets = torch.zeros(*ids.shape, ids.size(1), dtype=torch.bool, device=ids.device)
    targets[:, 1:, :1] = True
    return targets


def earlier_same(ids: Tensor, match: int = 1) -> Tensor:
    """Earlier places where the same token stands, after the same `match` - 1 tokens before it.

    >>> earlier_same(torch.tensor([[7, 5, 7]]))[0, 2].tolist()
    [True, False, False]
    """
    same = ids[:, :, None] == ids[:, None, :]
    for _ in range(match - 1):
        same = same & shifted(shifted(same, 1), 2)  # the pair before agrees too
    return same.tril(-1)


def after_earlier_same(ids: Tensor, match: int = 1) -> Tensor:
    """What followed at those earlier places: where the text goes on if it repeats itself.

    The query itself is no answer, although it does follow its like in "ll".

    >>> after_earlier_same(torch.tensor([[7, 5, 7]]))[0, 2].tolist()
    [False, True, False]
    """
    return shifted(earlier_same(ids, match), 2).tril(-1)


def shifted(targets: Tensor, dim: int) -> Tensor:
    """Moves every mark one place later along `dim`; the first place is empty then."""
    moved = targets.roll(1, dims=dim)
    moved.select(dim, 0).fill_(False)
    return moved
