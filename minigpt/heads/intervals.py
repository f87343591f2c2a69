"""How sure a mean over stories is: intervals by bootstrap, wide enough for all at once.

Stories are drawn again and again with replacement. Whoever looks at many heads and many relations
finds something in noise, so all intervals together hold with 95 %: each is as wide as the largest
deviation among all, in its own standard errors, demands (the max-statistic).

answers of each story -> mean, low, high
"""

from dataclasses import dataclass

import torch
from torch import Tensor

CERTAINTY = 0.95
NUM_DRAWS = 1000


@dataclass(frozen=True)
class Interval:
    """A mean and its bounds, of one shape; NaN where nothing was asked."""

    mean: Tensor
    low: Tensor
    high: Tensor


def intervals(sums: Tensor, counts: Tensor, *, share: bool = False, seed: int = 0) -> Interval:
    """Means over all stories' answers, each story given as a sum and a count: (S, …) -> (…).

    The answers that make up a `share` are 0 or 1; ten of ten are no proof of always, so its bounds
    are at least 3 / S away, the "rule of three" (Hanley & Lippman-Hand 1983).
    """
    counts = counts.expand_as(sums).double()
    sums = sums.double()
    mean = sums.sum(0) / counts.sum(0)
    times = drawn(len(sums), seed)
    means = torch.tensordot(times, sums, 1) / torch.tensordot(times, counts, 1)
    deviation = means - mean
    error = deviation.square().nanmean(0).sqrt()
    steps = (deviation.abs() / error.clamp(min=1e-12)).nan_to_num(0).reshape(NUM_DRAWS, -1).amax(1)
    reach = error * steps.quantile(CERTAINTY)
    if share:
        reach = torch.maximum(reach, 3 / (counts > 0).sum(0))
    low, high = mean - reach, mean + reach
    return Interval(mean, low.clamp(0, 1), high.clamp(0, 1)) if share else Interval(mean, low, high)


def drawn(num_stories: int, seed: int) -> Tensor:
    """How often each story is in each draw: (NUM_DRAWS, S)."""
    generator = torch.Generator().manual_seed(seed)
    picks = torch.randint(num_stories, (NUM_DRAWS, num_stories), generator=generator)
    times = torch.zeros(NUM_DRAWS, num_stories, dtype=torch.float64)
    return times.scatter_add_(1, picks, torch.ones_like(times))
