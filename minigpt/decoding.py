"""The model for one more token: the same arithmetic in about half the calls.

While a text is written the tensors are so small that calling PyTorch takes longer than computing.
So queries, keys and values come from one product here, modules are left out, and what stays the
same is looked up once. `model.py` is the text to read; `tests/test_decoding.py` checks that this
agrees with it for every setting of a model.

ids (B, 1) and a cache of what came before -> logits (B, V)
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minigpt.attention import MultiHeadAttention
from minigpt.cache import KVCache, LayerCache
from minigpt.model import GPT, TransformerBlock

Linear = tuple[Tensor, Tensor | None]  # weight and bias, as `F.linear` takes them
Angles = tuple[Tensor, ...] | None  # cosines and sines of one position, (2, D / 2) each
TINY = 1e-30  # instead of a length of zero


class Decoder:
    """Reads one token of each of B texts, with the weights that the model has when it is made."""

    def __init__(self, model: GPT) -> None:
        self.tokens, self.head = model.token_embedding.weight, model.head.weight
        learned = model.config.positions == "learned"
        self.positions = model.position_embedding.weight if learned else None
        self.blocks = [BlockDecoder(block) for block in model.blocks]  # type: ignore[arg-type]
        self.final_norm = Norm(model.final_norm)
        self.angles = angles_of(model)

    def __call__(self, ids: Tensor, cache: KVCache) -> Tensor:
        """Scores every token as the next one: (B, 1) -> (B, V); the cache takes the token in."""
        position = cache.length
        x = F.embedding(ids[:, 0], self.tokens)  # (B, E)
        if self.positions is not None:
            x = x + self.positions[position]
        angles = None if self.angles is None else self.angles[position].unbind()
        for block, layer in zip(self.blocks, cache.layers, strict=True):
            x = block(x, layer, angles)
        return F.linear(self.final_norm(x), self.head)


class BlockDecoder:
    """One block: (B, E) -> (B, E)."""

    def __init__(self, block: TransformerBlock) -> None:
        self.attention_norm = Norm(block.attention_norm)
        self.attention = AttentionDecoder(block.attention)
        self.out_proj = transposed_parts_of(block.attention.out_proj)
        self.feed_forward_norm = Norm(block.feed_forward_norm)
        self.expand = parts_of(block.feed_forward.expand)
        self.contract = transposed_parts_of(block.feed_forward.contract)
        self.activation = block.feed_forward.activation

    def __call__(self, x: Tensor, cache: LayerCache, angles: Angles) -> Tensor:
        x = added(x, self.attention(self.attention_norm(x), cache, angles), *self.out_proj)
        hidden = self.activation(F.linear(self.feed_forward_norm(x), *self.expand))
        return added(x, hidden, *self.contract)


class AttentionDecoder:
    """All heads for one token of each text, side by side: (B, E) -> (B, H·D)."""

    def __init__(self, attention: MultiHeadAttention) -> None:
        projections = [attention.W_query, attention.W_key, attention.W_value]
        num_heads, head_dim = attention.num_heads, attention.head_dim
        self.shape, self.halves = (-1, 3, num_heads, 1, head_dim), (-1, 2, num_heads, 1, 2)
        weights, biases = zip(*map(parts_of, projections), strict=True)
        self.project: Linear = (
            torch.cat(weights),
            None if biases[0] is None else torch.cat(biases),
        )
        self.lengths = lengths_of(attention)

    def __call__(self, x: Tensor, cache: LayerCache, angles: Angles) -> Tensor:
        projected = F.linear(x, *self.project).view(self.shape)  # (B, 3, H, 1, D)
        if self.lengths is not None or angles is not None:
            queries_and_keys = projected.narrow(1, 0, 2)
            if self.lengths is not None:
                norms = torch.linalg.vector_norm(queries_and_keys, dim=-1, keepdim=True)
                queries_and_keys.mul_(self.lengths / norms.add_(TINY))
            if angles is not None:
                queries_and_keys.copy_(self.turned(queries_and_keys, *angles))
        keys, values = cache.append_one(projected.narrow(1, 1, 2))  # (B, H, S, D) each
        queries = projected.select(1, 0)
        return F.scaled_dot_product_attention(queries, keys, values).flatten(1)  # of (B, H, 1, D)

    def turned(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        """Queries and keys at their angle: (B, 2, H, 1, D) -> the same."""
        halves = x.view(*self.halves, cosines.size(-1))
        return torch.addcmul(halves * cosines, halves.flip(-2), sines).view(x.shape)


def angles_of(model: GPT) -> Tensor | None:
    """For each position the factors of both halves, and of the halves in exchange: (T, 2, 2, D/2).

    The cosines stand there twice; the sines are negative for the first half.
    """
    first: Any = model.blocks[0]  # all layers share them
    rotary = first.attention.rotary
    if rotary is None:
        return None
    cosines, sines = rotary.cosines.to(model.head.weight), rotary.sines.to(model.head.weight)
    factors = [torch.stack([cosines, cosines], 1), torch.stack([-sines, sines], 1)]
    return torch.stack(factors, 1)


class Norm:
    """A LayerNorm without its module: (B, E) -> (B, E)."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        self.arguments = (norm.normalized_shape, norm.weight, norm.bias, norm.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, *self.arguments)


def parts_of(linear: nn.Linear) -> Linear:
    return linear.weight, linear.bias


def transposed_parts_of(linear: nn.Linear) -> Linear:
    return linear.weight.T, linear.bias


def added(x: Tensor, inputs: Tensor, transposed: Tensor, bias: Tensor | None) -> Tensor:
    """The stream and what a linear layer adds to it, in one call: (B, E), (B, F) -> (B, E)."""
    total = torch.addmm(x, inputs, transposed)
    return total if bias is None else total + bias


def lengths_of(attention: MultiHeadAttention) -> Tensor | None:
    """How long queries and keys are made, times the weight of each number: (2, 1, 1, D)."""
    norms = (attention.query_norm, attention.key_norm)
    if not all(isinstance(norm, nn.RMSNorm) for norm in norms):
        return None
    weights = torch.stack([norm.weight for norm in norms])  # type: ignore[misc]
    return weights[:, None, None] * attention.head_dim**0.5
