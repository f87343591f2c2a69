"""Dropout: in training a share of the numbers becomes 0, and the others make up for it.

Source: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from
Overfitting".

x -> x with zeros, and on average the same
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 2**16  # two random bytes decide about each number


class Dropout(nn.Module):
    """Drops `share` of its input's numbers while training."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        return dropped(x, self.share) if self.training else x


def dropped(x: Tensor, share: float) -> Tensor:
    """Each number is 0 with probability `share`, else itself / (1 - share).

    On a CPU PyTorch draws them one after the other, which takes longer than the layer itself. Here
    one draw serves four numbers, so the share is a whole number of 65,536ths.
    """
    if share == 0 or x.device.type != "cpu":
        return F.dropout(x, share)
    bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    draws = bits.view(torch.int16)[: x.numel()].view(x.shape)
    gone = min(round(share * LEVELS), LEVELS - 1)
    kept = (draws >= gone - LEVELS // 2).to(x.dtype)
    return x * kept.mul_(LEVELS / (LEVELS - gone))
