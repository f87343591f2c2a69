"""What attention weights tell about a head, as numbers: pure functions that change nothing.

What all of them have in common is in `scoring`.

weights (L, B, H, T, T), ids (B, T) -> (L, H)
"""

import math

import torch
from torch import Tensor

from minigpt.heads import targets
from minigpt.heads.scoring import Score, except_first_query, share_on

NUM_OFFSETS = 16  # how far back the profiles go, the query itself included
NEAR = 3  # tokens back
SINK = 0.3  # attention on the first token from which a query rests

# ------------------------------------------------------------------------------ by position


@Score
def previous_token(weights: Tensor, ids: Tensor) -> Tensor:
    """Attention on the token just before the query.

    Source: Clark et al. 2019, "What Does BERT Look At?", 3.1; Olsson et al. 2022.
    """
    return share_on(weights, targets.back(ids, 1))


@Score
def itself(weights: Tensor, ids: Tensor) -> Tensor:
    """Attention of a query on itself; the first is not asked. Source: Clark et al. 2019, 3.1."""
    return except_first_query(share_on(weights, targets.back(ids, 0)))


@Score
def nearby(weights: Tensor, ids: Tensor) -> Tensor:
    """Attention on the query and the three tokens before it, asked where there are others.

    Source: the local heads of Eldan & Li 2023, "TinyStories", which they show without a measure.
    """
    return share_on(weights, targets.near(ids, NEAR))


@Score
def offset_profile(weights: Tensor, _: Tensor) -> Tensor:
    """Attention on the tokens 0, 1, 2 … 15 places back: -> (16, L, H). Source: Clark et al. 2019.

    The first query is not asked, nor any for what would stand before the text.
    """
    answers = weights.new_full((NUM_OFFSETS, *weights.shape[:-1]), math.nan)
    for offset in range(min(NUM_OFFSETS, weights.size(-1))):
        answers[offset, ..., offset:] = weights.diagonal(-offset, -2, -1)
    return except_first_query(answers)


@Score
def peak_profile(weights: Tensor, _: Tensor) -> Tensor:
    """Share of queries whose largest weight is 0, 1, 2 … 15 places back: -> (16, L, H)."""
    places = torch.arange(weights.size(-1), device=weights.device)
    offsets = torch.arange(NUM_OFFSETS, device=weights.device)
    back = places - weights.argmax(-1)  # (L, B, H, T)
    answers = (back == offsets.view(-1, 1, 1, 1, 1)).to(weights.dtype)
    return except_first_query(answers.masked_fill(weights.isnan().any(-1), math.nan))


def positional_share(weights: Tensor, ids: Tensor) -> Tensor:
    """Largest share of queries that look most at one fixed offset: the peak of `peak_profile`.

    Source: Voita et al. 2019, "Analyzing Multi-Head Self-Attention", 5.1, who call a head
    positional from 0.90 on.
    """
    return peak_profile(weights, ids).amax(0)


# ------------------------------------------------------------------------------ by content


@Score
def first_token(weights: Tensor, ids: Tensor) -> Tensor:
    """Attention of all later queries on the first token, where a head rests: the "sink".

    Source: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks".
    """
    return share_on(weights, targets.first(ids))


@Score
def first_token_on_repeats(weights: Tensor, ids: Tensor) -> Tensor:
    """`first_token` where an induction head has its work: at tokens that stood there before."""
    return first_token.ask(weights, ids).masked_fill(~known(ids), math.nan)


@Score
def first_token_elsewhere(weights: Tensor, ids: Tensor) -> Tensor:
    """`first_token` at tokens that are new in the text."""
    return first_token.ask(weights, ids).masked_fill(known(ids), math.nan)


@Score
def rests(weights: Tensor, ids: Tensor) -> Tensor:
    """1 where a query has at least 0.3 on the first token, a "sink" by Gu et al. 2025, else 0."""
    share = first_token.ask(weights, ids)
    return (share >= SINK).to(weights).masked_fill(share.isnan(), math.nan)


def known(ids: Tensor) -> Tensor:
    """Where a token stands that an earlier one equals: (B, T) -> (B, 1, T)."""
    return targets.earlier_same(ids).any(-1)[:, None, :]


@Score
def duplicate(weights: Tensor, ids: Tensor) -> Tensor:
    """Attention on earlier places with the query's own token, where there are any.

    Source: Wang et al. 2022, "Interpretability in the Wild", 3 (duplicate token heads).
    """
    return share_on(weights, targets.earlier_same(ids))


@Score
def prefix_matching(weights: Tensor, ids: Tensor) -> Tensor:
    """Attention on what followed the query's token earlier, whatever comes next in the text.

    Source: Olsson et al. 2022, "In-context Learning and Induction Heads". The detector of
    TransformerLens counts the query itself too where it follows its own token, as in "ll", and,
    as for the other scores, divides by all queries, also those that have nothing to look for.
    """
    return share_on(weights, targets.after_earlier_same(ids))


@Score
def induction(weights: Tensor, ids: Tensor) -> Tensor:
    """The same where the text does go on as before: A B … A looks at B, and B comes next.

    These are the queries at which looking there helps. Source: Olsson et al. 2022.
    """
    return share_on(weights, targets.where_it_repeats(ids))


# ------------------------------------------------------------------------------ by shape


@Score
def entropy(weights: Tensor, _: Tensor) -> Tensor:
    """How evenly a query spreads its attention: entropy / ln(i + 1); 0 one token, 1 all alike.

    Source: the entropies of Clark et al. 2019, 3.3, divided here by the largest possible one,
    so that early and late queries compare.
    """
    largest = torch.arange(1, weights.size(-1) + 1, device=weights.device).to(weights.dtype).log()
    return except_first_query(torch.special.entr(weights).sum(-1) / largest)


@Score
def distance(weights: Tensor, _: Tensor) -> Tensor:
    """How many tokens back a query looks, on average over its attention.

    Source: Vig & Belinkov 2019, "Analyzing the Structure of Attention", 4.3.
    """
    places = torch.arange(weights.size(-1), device=weights.device, dtype=weights.dtype)
    return except_first_query(places * weights.sum(-1) - weights @ places)


@Score
def confidence(weights: Tensor, _: Tensor) -> Tensor:
    """A query's largest weight. Source: Voita et al. 2019, 3.2 (confident heads)."""
    return except_first_query(weights.amax(-1))
