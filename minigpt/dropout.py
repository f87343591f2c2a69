"""Dropout: in training a share of the numbers becomes 0, and the others make up for it.

Source: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from
Overfitting".

x -> x with zeros, and the same mean
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

STEPS = 2**16  # two random bytes decide about each number


class Dropout(nn.Module):
    """Drops `share` of its input's numbers while training."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        return dropped(x, self.share) if self.training else x


def dropped(x: Tensor, share: float) -> Tensor:
    """Each number is 0 with probability `share`, else itself / (1 - share).

    On a CPU PyTorch draws 32 bits for each, one after the other, which took a third of a training
    step. Here it draws 64 for four, so the share is a whole number of 65,536ths.
    """
    if share == 0 or x.device.type != "cpu":
        return F.dropout(x, share)
    bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    draws = bits.view(torch.int16)[: x.numel()].view(x.shape)
    gone = min(round(share * STEPS), STEPS - 1)
    kept = (draws >= gone - STEPS // 2).to(x.dtype)
    return x * kept.mul_(STEPS / (STEPS - gone))
