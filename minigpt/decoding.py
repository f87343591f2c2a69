"""The model for one more token: the same arithmetic in a third of the calls.

While a text is written the tensors are so small that calling PyTorch takes longer than computing.
So queries, keys and values come from one product here, modules are left out, and what stays the
same is looked up once. `model.py` is the text to read; `tests/test_decoding.py` checks that this
agrees with it for every setting of a model.

ids (B, 1) and a cache of what came before -> logits (B, V)
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minigpt.attention import MultiHeadAttention
from minigpt.cache import KVCache, LayerCache
from minigpt.model import GPT, TransformerBlock

Linear = tuple[Tensor, Tensor | None]  # weight and bias, as `F.linear` takes them
TINY = 1e-30  # instead of a length of zero


class Decoder:
    """Reads one token of each of B texts, with the weights that the model has when it is made."""

    def __init__(self, model: GPT) -> None:
        self.tokens, self.head = model.token_embedding.weight, model.head.weight
        learned = model.config.positions == "learned"
        self.positions = model.position_embedding.weight if learned else None
        self.blocks = [BlockDecoder(block) for block in model.blocks]  # type: ignore[arg-type]
        self.final_norm = Norm(model.final_norm)

    def __call__(self, ids: Tensor, cache: KVCache) -> Tensor:
        """Scores every token as the next one: (B, 1) -> (B, V); the cache takes the token in."""
        position = cache.length
        x = F.embedding(ids[:, 0], self.tokens)  # (B, E)
        if self.positions is not None:
            x = x + self.positions[position]
        for block, layer in zip(self.blocks, cache.layers, strict=True):
            x = block(x, layer, position)
        return F.linear(self.final_norm(x), self.head)


class BlockDecoder:
    """One block: (B, E) -> (B, E)."""

    def __init__(self, block: TransformerBlock) -> None:
        self.attention_norm = Norm(block.attention_norm)
        self.attention = AttentionDecoder(block.attention)
        self.feed_forward_norm = Norm(block.feed_forward_norm)
        self.expand = parts_of(block.feed_forward.expand)
        self.contract = parts_of(block.feed_forward.contract)
        self.activation = block.feed_forward.activation

    def __call__(self, x: Tensor, cache: LayerCache, position: int) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cache, position)
        hidden = self.activation(F.linear(self.feed_forward_norm(x), *self.expand))
        return x + F.linear(hidden, *self.contract)


class AttentionDecoder:
    """All heads for one token of each text: (B, E) -> (B, E)."""

    def __init__(self, attention: MultiHeadAttention) -> None:
        projections = [attention.W_query, attention.W_key, attention.W_value]
        self.shape = (-1, 3, attention.num_heads, 1, attention.head_dim)
        weights, biases = zip(*map(parts_of, projections), strict=True)
        weight = torch.cat(weights)
        self.project: Linear = (weight, None if biases[0] is None else torch.cat(biases))
        self.out_proj = parts_of(attention.out_proj)
        self.lengths = lengths_of(attention)
        self.cosines = self.sines = None
        if attention.rotary is not None:
            sines = attention.rotary.sines.to(weight)
            self.cosines = attention.rotary.cosines.to(weight)  # (T, D / 2)
            self.sines = torch.stack([-sines, sines], dim=1)  # (T, 2, D / 2)

    def __call__(self, x: Tensor, cache: LayerCache, position: int) -> Tensor:
        projected = F.linear(x, *self.project).view(self.shape)  # (B, 3, H, 1, D)
        if self.lengths is not None or self.sines is not None:
            turned = self.turn(projected[:, :2], position)
            queries, keys = turned.unbind(1)
            values = projected[:, 2]
        else:
            queries, keys, values = projected.unbind(1)
        keys, values = cache.append(keys, values)
        context = F.scaled_dot_product_attention(queries, keys, values)  # (B, H, 1, D)
        return F.linear(context.flatten(1), *self.out_proj)

    def turn(self, x: Tensor, position: int) -> Tensor:
        """Queries and keys of their length and at their angle: (B, 2, H, 1, D) -> the same."""
        if self.lengths is not None:
            norms = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
            x = x * (self.lengths / norms.clamp_(min=TINY))
        if self.cosines is None or self.sines is None:
            return x
        halves = x.unflatten(-1, (2, -1))
        cosines, sines = self.cosines[position], self.sines[position]
        return torch.addcmul(halves * cosines, halves.flip(-2), sines).flatten(-2)


class Norm:
    """A LayerNorm without its module: (B, E) -> (B, E)."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        self.arguments = (norm.normalized_shape, norm.weight, norm.bias, norm.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, *self.arguments)


def parts_of(linear: nn.Linear) -> Linear:
    return linear.weight, linear.bias


def lengths_of(attention: MultiHeadAttention) -> Tensor | None:
    """How long queries and keys are made, times the weight of each number: (2, 1, 1, D)."""
    norms = (attention.query_norm, attention.key_norm)
    if not all(isinstance(norm, nn.RMSNorm) for norm in norms):
        return None
    weights = torch.stack([norm.weight for norm in norms])  # type: ignore[misc]
    return weights[:, None, None] * attention.head_dim**0.5
