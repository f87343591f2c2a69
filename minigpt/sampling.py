"""Which token comes next: from the model's scores to a draw.

Each function does one thing to the scores and leaves -inf where a token is dropped. All of them
are pure: the random numbers are handed in.

logits (B, V) -> ids (B,)
"""

import math

import torch
from torch import Tensor

from minigpt.config import SampleConfig


def penalise(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Lowers the scores of tokens that the text has `seen`: two of (B, V) -> (B, V).

    Source: Keskar et al. 2019, "CTRL", section 4.1.
    """
    if penalty == 1:
        return logits
    limit = torch.finfo(logits.dtype).max
    lowered = torch.where(logits > 0, logits / penalty, logits * penalty).clamp(-limit, limit)
    return torch.where(seen, lowered, logits)


def at_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Divides; the best score becomes 0 first, so that no temperature is too small for that."""
    return (logits - logits.amax(-1, keepdim=True)) / temperature


def keep_top_k(logits: Tensor, top_k: int | None) -> Tensor:
    """Drops all but the `top_k` best, and whatever equals the last of them."""
    if not top_k or top_k >= logits.size(-1):
        return logits
    last = logits.topk(top_k).values[..., -1:]
    return logits.masked_fill(logits < last, -math.inf)


def keep_top_p(logits: Tensor, top_p: float | None) -> Tensor:
    """Drops all but the best ones that together first reach the probability `top_p`.

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration".
    """
    if top_p is None or top_p >= 1:
        return logits
    ordered, order = logits.sort(descending=True, stable=True)
    probabilities = ordered.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities
    dropped = before >= top_p
    dropped[..., 0] = False
    return logits.masked_fill(torch.empty_like(dropped).scatter_(-1, order, dropped), -math.inf)


def keep_min_p(logits: Tensor, min_p: float | None) -> Tensor:
    """Drops what is less than `min_p` times as probable as the best.

    Source: Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling".
    """
    if not min_p:
        return logits
    best = logits.amax(-1, keepdim=True)
    return logits.masked_fill(logits < best + math.log(min_p), -math.inf)


def keep(scores: Tensor, sampling: SampleConfig) -> Tensor:
    """The scores that a token is drawn from, -inf where it is dropped: (B, V) -> (B, V)."""
    scores = keep_top_k(scores, sampling.top_k)
    scores = keep_top_p(scores, sampling.top_p)
    return keep_min_p(scores, sampling.min_p)


def draw(ends: Tensor, uniforms: Tensor) -> Tensor:
    """Takes the tokens under the numbers (B,), of probabilities laid end to end (B, V)."""
    points = uniforms[:, None] * ends[:, -1:]
    return torch.searchsorted(ends, points, right=True)[:, 0]


class Choice:
    """The next token of each sample: logits, seen (B, V), uniforms (B,) -> ids (B,).

    Temperature 0 takes the best.
    """

    def __init__(
        self, logits: Tensor, seen: Tensor, sampling: SampleConfig, uniforms: Tensor
    ) -> None:
        self.sampling, self.uniforms = sampling, uniforms
        self.logits = penalise(logits, seen, sampling.repetition_penalty)
        if sampling.temperature == 0:
            self.ids = self.logits.argmax(-1)
            return
        self.scores = at_temperature(self.logits, sampling.temperature)
        self.ends = keep(self.scores, sampling).softmax(-1).cumsum(-1)
        self.ids = draw(self.ends, uniforms)

    def unsure(self, error: Tensor) -> Tensor:
        """Where it might be another if every score were off by up to `error`: (B, 1) -> (B,).

        Errs on the side of doubt.
        """
        penalty, temperature = self.sampling.repetition_penalty, self.sampling.temperature
        apart = error * (2 * max(penalty, 1 / penalty))  # by how much the distance of two is off
        if temperature == 0:
            return nearly_equal(self.logits, 1, apart)
        apart, too_coarse = apart / temperature, (apart > temperature)[:, 0]
        doubt = selection_in_doubt(self.scores, self.sampling, apart)
        return too_coarse | doubt | border_in_doubt(self.ends, self.uniforms, apart)


# ------------------------------------------------------------------------------ how sure that is


def border_in_doubt(ends: Tensor, uniforms: Tensor, apart: Tensor) -> Tensor:
    """Whether a draw lies near a border between two tokens.

    If distances of scores change by less than d, and d is below 1, a sum c of some probabilities
    changes by less than 2·d·c·(1 − c).
    """
    distances = (ends - uniforms[:, None]).abs()
    return (distances <= 2 * apart * ends * (1 - ends)).any(-1)


def selection_in_doubt(scores: Tensor, sampling: SampleConfig, apart: Tensor) -> Tensor:
    """Whether other tokens might be among those that are drawn from; the best score is 0."""
    doubt = torch.zeros(len(scores), dtype=torch.bool)
    if sampling.top_k:
        doubt |= nearly_equal(scores, sampling.top_k, apart)
        scores = keep_top_k(scores, sampling.top_k)
    if sampling.top_p is not None and sampling.top_p < 1 and scores.size(-1) > 1:
        ordered = scores.sort(descending=True).values
        ends = ordered.softmax(-1).cumsum(-1)
        count = (ends < sampling.top_p).sum(-1)
        doubt |= ((ends - sampling.top_p).abs() <= apart).any(-1)
        gaps = ordered[:, :-1] - ordered[:, 1:] <= apart
        doubt |= gaps.gather(-1, count.clamp(max=gaps.size(-1) - 1)[:, None])[:, 0]
    if sampling.min_p:
        doubt |= ((scores - math.log(sampling.min_p)).abs() <= apart).any(-1)
    return doubt


def nearly_equal(scores: Tensor, rank: int, apart: Tensor) -> Tensor:
    """Whether the scores on this rank and on the next might change places."""
    if rank >= scores.size(-1):
        return torch.zeros(len(scores), dtype=torch.bool)
    best = scores.topk(rank + 1).values
    return (best[:, -2:-1] - best[:, -1:] <= apart)[:, 0]
