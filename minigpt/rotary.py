"""Rotary positions: a token's place is the angle by which its queries and keys are turned.

Pairs of numbers in a query or key are the coordinates of a point; the point at position t is
turned by t times that pair's speed. A dot product of two turned points depends only on how far
apart their positions are. Source: Su et al. 2021, "RoFormer", section 3.4.

queries or keys -> the same, turned
"""

import torch
from torch import Tensor, nn


class Rotary(nn.Module):
    """Turns queries or keys (..., T, D) by their positions; D must be even."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, head_dim: int, context_length: int, base: float = 10_000.0) -> None:
        super().__init__()
        if head_dim % 2:
            raise ValueError(f"rotary positions need an even head_dim, got {head_dim}")
        speeds = base ** -(torch.arange(0, head_dim, 2) / head_dim)
        angles = torch.outer(torch.arange(context_length), speeds)  # (T, D / 2)
        self.register_buffer("cosines", angles.cos(), persistent=False)
        self.register_buffer("sines", angles.sin(), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Turns `x` (..., T, D), whose first token stands at position `start`.

        Raises ValueError where the text is longer than the context.
        """
        positions = slice(start, start + x.size(-2))
        if positions.stop > len(self.cosines):
            raise ValueError(f"{positions.stop} tokens, positions for {len(self.cosines)}")
        cosines, sines = self.cosines[positions].to(x.dtype), self.sines[positions].to(x.dtype)
        first, second = x.chunk(2, dim=-1)  # (..., T, D / 2) each
        turned = (first * cosines - second * sines, second * cosines + first * sines)
        return torch.cat(turned, dim=-1)
