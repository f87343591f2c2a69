"""Attention, three times: one head, several heads in series, several heads at once.

The shapes are letters, here and in every other file:
B batch, T query positions, S key positions, H heads, D head_dim, E embed_dim,
L layers, V vocabulary. Source: Vaswani et al. 2017, "Attention Is All You Need".

(…, T, E) -> (…, T, E)
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minigpt.cache import LayerCache
from minigpt.dropout import dropped
from minigpt.rotary import Rotary

# ------------------------------------------------------------------------------ one idea


def causal_weights(queries: Tensor, keys: Tensor) -> Tensor:
    """How much each query looks at each key: (…, T, D), (…, S, D) -> (…, T, S), rows sum to 1.

    The T queries belong to the last T of the S positions, and none looks at a later position.
    """
    head_dim = queries.size(-1)
    scores = (queries / head_dim**0.5) @ keys.mT  # scaled first: there are fewer queries
    return (scores + causal_mask(scores)).softmax(dim=-1)


def causal_mask(scores: Tensor) -> Tensor:
    """What to add to scores: -inf where a key comes after its query, else 0: (…, T, S) -> (T, S).

    Added, not filled in, since a sum costs nothing on the way back.
    """
    num_queries, num_keys = scores.shape[-2:]
    everywhere = scores.new_full((num_queries, num_keys), float("-inf"))
    return everywhere.triu(diagonal=num_keys - num_queries + 1)


# ------------------------------------------------------------------------------ one head


class SelfAttention(nn.Module):
    """One causal head: (…, T, input_dim) -> (…, T, head_dim)."""

    def __init__(self, input_dim: int, head_dim: int) -> None:
        super().__init__()
        self.W_query = nn.Linear(input_dim, head_dim, bias=False)
        self.W_key = nn.Linear(input_dim, head_dim, bias=False)
        self.W_value = nn.Linear(input_dim, head_dim, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        weights = causal_weights(self.W_query(inputs), self.W_key(inputs))
        return weights @ self.W_value(inputs)


# ------------------------------------------------------------------------------ heads in series


class MultiHeadAttentionWrapper(nn.Module):
    """Several heads, one after the other, side by side in the result: (…, T, E) -> (…, T, E)."""

    def __init__(self, input_dim: int, head_dim: int, num_heads: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(SelfAttention(input_dim, head_dim) for _ in range(num_heads))
        self.out_proj = nn.Linear(num_heads * head_dim, input_dim, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        context = torch.cat([head(inputs) for head in self.heads], dim=-1)  # (…, T, H·D)
        return self.out_proj(context)


# ------------------------------------------------------------------------------ heads at once


class HeadNorm(nn.RMSNorm):
    """Vectors of one length, in the number format that they come in, whatever the weight's is."""

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight.type_as(x), self.eps)


class MultiHeadAttention(nn.Module):
    """All heads in one go, the same function as the wrapper: (…, T, E) -> (…, T, E).

    `rotary` turns queries and keys by their positions; `qk_norm` gives them all one length, which
    is learned (Henry et al. 2020, "Query-Key Normalization for Transformers"). `fused` lets PyTorch
    compute the weighted sum without storing the weights; off, it is written out as in the lesson.
    """

    def __init__(
        self,
        input_dim: int,
        head_dim: int,
        num_heads: int,
        *,
        bias: bool = False,
        dropout: float = 0.0,
        rotary: Rotary | None = None,
        qk_norm: bool = False,
        fused: bool = True,
    ) -> None:
        super().__init__()
        self.head_dim, self.num_heads = head_dim, num_heads
        self.W_query = nn.Linear(input_dim, num_heads * head_dim, bias=bias)
        self.W_key = nn.Linear(input_dim, num_heads * head_dim, bias=bias)
        self.W_value = nn.Linear(input_dim, num_heads * head_dim, bias=bias)
        self.out_proj = nn.Linear(num_heads * head_dim, input_dim, bias=bias)
        self.query_norm = HeadNorm(head_dim) if qk_norm else nn.Identity()
        self.key_norm = HeadNorm(head_dim) if qk_norm else nn.Identity()
        self.rotary, self.dropout, self.fused = rotary, dropout, fused

    @classmethod
    def from_heads(cls, wrapper: MultiHeadAttentionWrapper) -> "MultiHeadAttention":
        """Stacks the weights of heads in series; the result computes the same function."""
        num_heads, joined_dim = len(wrapper.heads), wrapper.out_proj.in_features
        batched = cls(wrapper.out_proj.out_features, joined_dim // num_heads, num_heads)
        batched.to(wrapper.out_proj.weight)
        for name in ("W_query", "W_key", "W_value"):
            rows = torch.cat([getattr(head, name).weight for head in wrapper.heads])
            getattr(batched, name).load_state_dict({"weight": rows})
        batched.out_proj.load_state_dict(wrapper.out_proj.state_dict())
        return batched

    def forward(self, inputs: Tensor, cache: LayerCache | None = None) -> Tensor:
        start = cache.length if cache is not None else 0
        queries, keys = self.queries_and_keys(inputs, start)
        values = self.split_heads(self.W_value(inputs))
        if cache is not None:
            keys, values = cache.append(keys, values)
        context = self.attend(queries, keys, values)
        return self.out_proj(self.join_heads(context))

    def attention_weights(self, inputs: Tensor) -> Tensor:
        """Who looks at whom, without dropout: (…, T, E) -> (…, H, T, T)."""
        return causal_weights(*self.queries_and_keys(inputs))

    def queries_and_keys(self, inputs: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        """(…, T, E) -> two of (…, H, T, D); the first token stands at position `start`."""
        queries = self.query_norm(self.split_heads(self.W_query(inputs)))
        keys = self.key_norm(self.split_heads(self.W_key(inputs)))
        if self.rotary is not None:
            queries, keys = self.rotary(queries, start), self.rotary(keys, start)
        return queries, keys

    def split_heads(self, x: Tensor) -> Tensor:
        x = x.view(*x.shape[:-1], self.num_heads, self.head_dim)  # (…, T, H, D)
        return x.transpose(-3, -2)  # (…, H, T, D)

    def join_heads(self, x: Tensor) -> Tensor:
        x = x.transpose(-3, -2)  # (…, T, H, D)
        return x.flatten(-2)  # (…, T, H·D)

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """(…, H, T, D), (…, H, S, D) twice -> (…, H, T, D)."""
        dropout = self.dropout if self.training else 0.0
        on_cpu = queries.device.type == "cpu"  # where the fused kernel has no dropout
        if not self.fused or (dropout and on_cpu):
            return dropped(causal_weights(queries, keys), dropout) @ values
        num_queries, num_keys = queries.size(-2), keys.size(-2)
        if num_queries == num_keys or num_queries == 1:
            is_causal = num_queries > 1
            return F.scaled_dot_product_attention(
                queries, keys, values, dropout_p=dropout, is_causal=is_causal
            )
        mask = causal_mask(queries.new_empty(num_queries, num_keys))
        return F.scaled_dot_product_attention(queries, keys, values, mask, dropout_p=dropout)
