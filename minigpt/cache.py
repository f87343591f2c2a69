"""What attention has already computed: the keys and values of earlier tokens.

While a text is written one token at a time, the keys and values of the tokens before it stay
the same. Each layer keeps its own in a buffer that is allocated once.

keys and values of new tokens -> keys and values of all tokens so far
"""

import torch
from torch import Tensor


class LayerCache:
    """The keys and values of one layer, each (B, H, S, D), with room for `capacity` tokens."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self.buffer: Tensor | None = None  # (B, 2, H, capacity, D), made when shapes are known

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Takes the new tokens' keys and values (B, H, T, D), returns all of them (B, H, S, D)."""
        end = self.length + keys.size(-2)
        if end > self.capacity:
            raise ValueError(f"cache holds {self.capacity} tokens, {end} were given")
        if self.buffer is None:
            batch, heads, _, head_dim = keys.shape
            self.buffer = keys.new_empty(batch, 2, heads, self.capacity, head_dim)
        self.buffer[:, 0, :, self.length : end] = keys
        self.buffer[:, 1, :, self.length : end] = values
        self.length = end
        return self.buffer[:, 0, :, :end], self.buffer[:, 1, :, :end]

    def append_one(self, keys_and_values: Tensor) -> tuple[Tensor, ...]:
        """The same for one more token after others, (B, 2, H, 1, D), in fewer operations."""
        if self.buffer is None or self.length >= self.capacity:
            raise ValueError(f"cache holds {self.capacity} tokens and needs one before this")
        self.buffer.narrow(3, self.length, 1).copy_(keys_and_values)
        self.length += 1
        return self.buffer.narrow(3, 0, self.length).unbind(1)


class KVCache:
    """One `LayerCache` for each layer of a model."""

    def __init__(self, num_layers: int, capacity: int) -> None:
        self.layers = [LayerCache(capacity) for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """How many tokens the cache has seen."""
        return self.layers[0].length

    def expand(self, batch: int) -> None:
        """Repeats a cache of one text for `batch` continuations of it."""
        for layer in self.layers:
            if layer.buffer is not None:
                layer.buffer = torch.repeat_interleave(layer.buffer, batch, dim=0)
