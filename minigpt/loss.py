"""How surprised the model is by the next token, in nats.

logits (B, T, V), targets (B, T) -> a scalar to train on, or one number per token of a split
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minigpt.data import Split

NOTHING = -1  # a target where there is nothing to predict


def token_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """−ln p of each target: (B, T, V), (B, T) -> (B, T), zero where the target is `NOTHING`."""
    flat = F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=NOTHING, reduction="none"
    )
    return flat.view_as(targets)


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean of `token_losses` over the targets there are: (B, T, V), (B, T) -> ()."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=NOTHING)


@torch.no_grad()
def evaluate(
    model: nn.Module,
    split: Split,
    context_length: int,
    batch_size: int = 32,
    each: Callable[[], None] = lambda: None,
) -> np.ndarray:
    """The loss of every token of a split, in nats: -> (N,), NaN where nothing was predicted.

    The whole split, in order, without randomness and without dropout; `each` is called once a
    batch. What is no number counts as infinite.
    """
    losses = np.full(len(split.ids), np.nan, dtype=np.float32)
    was_training = model.training
    model.eval()
    try:
        for x, y, positions in batches(split, context_length, batch_size):
            found = token_losses(model(x.to(device_of(model))).float().cpu(), y)
            there = y.numpy() != NOTHING
            losses[positions[there]] = np.nan_to_num(found.numpy()[there], nan=np.inf)
            each()
    finally:
        model.train(was_training)
    return losses


def batches(
    split: Split, context_length: int, batch_size: int
) -> Iterator[tuple[Tensor, Tensor, np.ndarray]]:
    for x, y, positions in split.windows(batch_size, context_length):
        yield torch.from_numpy(x), torch.from_numpy(y), positions


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def mean_loss(losses: np.ndarray) -> float:
    """Nats per token over what was predicted."""
    return float(np.nanmean(losses, dtype=np.float64))


def bits_per_byte(losses: np.ndarray, num_bytes: int) -> float:
    """The same, in a unit that does not depend on the tokenizer."""
    return float(np.nansum(losses, dtype=np.float64)) / math.log(2) / num_bytes
