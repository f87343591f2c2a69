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


def adjust(logits: Tensor, sampling: SampleConfig) -> Tensor:
    """The scores that a token is drawn from, -inf where it is dropped: (B, V) -> (B, V)."""
    logits = at_temperature(logits, sampling.temperature)
    logits = keep_top_k(logits, sampling.top_k)
    logits = keep_top_p(logits, sampling.top_p)
    return keep_min_p(logits, sampling.min_p)


def draw(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Lays the probabilities (B, V) end to end and takes the tokens under the numbers (B,)."""
    ends = probabilities.cumsum(-1)
    points = uniforms[:, None] * ends[:, -1:]
    return torch.searchsorted(ends, points, right=True)[:, 0]


def choose(logits: Tensor, seen: Tensor, sampling: SampleConfig, uniforms: Tensor) -> Tensor:
    """The next token of each sample: (B, V), (B, V), (B,) -> (B,); temperature 0 takes the best."""
    logits = penalise(logits, seen, sampling.repetition_penalty)
    if sampling.temperature == 0:
        return logits.argmax(-1)
    return draw(adjust(logits, sampling).softmax(-1), uniforms)
