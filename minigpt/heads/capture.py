"""Attention weights, taken while the model runs, without the model knowing.

A hook on each attention layer sees what goes in and asks the layer for its weights. They are
those before dropout, so that every row sums to 1, in training mode too.

ids -> weights (L, B, H, T, T)
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from minigpt.attention import MultiHeadAttention
from minigpt.generation import device_of, evaluating
from minigpt.heads.targets import PADDING
from minigpt.loss import NOTHING, token_losses
from minigpt.model import GPT, TransformerBlock

NUMBERS_AT_ONCE = 2**23  # weights or logits in memory, so that a large model fits too


class Captured:
    """What `capturing` saw of the model's last run: per layer the weights (B, H, T, T)."""

    def __init__(self, num_layers: int) -> None:
        self.layers: list[Tensor | None] = [None] * num_layers

    @property
    def weights(self) -> Tensor:
        """All layers, float32: (L, B, H, T, T). Raises ValueError if the model has not run."""
        layers = [layer for layer in self.layers if layer is not None]
        if len(layers) < len(self.layers):
            raise ValueError(f"{len(layers)} of {len(self.layers)} layers ran; run the model first")
        return torch.stack(layers).float()


@contextlib.contextmanager
def watching(model: GPT, look: Callable[[int, TransformerBlock, Tensor], None]) -> Iterator[None]:
    """Within the block `look` sees each layer's number, its block and what goes into attention.

    The model must read whole texts, without a cache. The hooks go when the block ends.
    """
    handles = []

    def watch(layer: int, block: TransformerBlock) -> None:
        def see(_: Any, arguments: tuple[Any, ...]) -> None:
            if len(arguments) > 1 and arguments[1] is not None:
                raise ValueError("attention is captured of whole texts: run without a cache")
            inputs = arguments[0].to(block.attention.W_query.weight.dtype)
            with torch.autocast(inputs.device.type, enabled=False):  # in full precision
                look(layer, block, inputs)

        handles.append(block.attention.register_forward_pre_hook(see))

    try:
        for layer, block in enumerate(model.blocks):
            assert isinstance(block, TransformerBlock)
            watch(layer, block)
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def capturing(model: GPT) -> Iterator[Captured]:
    """Within the block every run of the model leaves its attention weights behind."""
    captured = Captured(len(model.blocks))

    num_heads = model.config.num_heads

    def keep(layer: int, block: TransformerBlock, inputs: Tensor) -> None:
        weights = block.attention.attention_weights(inputs)
        captured.layers[layer] = in_place(block, weights, num_heads, torch.nan)

    with watching(model, keep):
        yield captured


@torch.no_grad()
def capture_attention(model: GPT, ids: Tensor | Sequence[int]) -> Tensor:
    """Who looks at whom in a text (T,) or several (B, T): -> (L, B, H, T, T), float32.

    Arrays are [layer, text, head, query, key]; rows sum to 1 and the future is exactly 0. Texts
    may end in padding: no token looks at it.
    """
    ids = torch.atleast_2d(torch.as_tensor(ids)).to(device_of(model)).clamp(min=0)
    with evaluating(model), capturing(model) as captured:
        model(ids)
    return captured.weights


def pad(texts: Sequence[Sequence[int]]) -> Tensor:
    """Texts of different lengths as one array (B, T), filled up with `PADDING`."""
    rows = [torch.as_tensor(text) for text in texts]
    return pad_sequence(rows, batch_first=True, padding_value=PADDING)


def losses_of(logits: Tensor, ids: Tensor) -> Tensor:
    """The loss of each token of padded texts: (B, T, V), (B, T) -> (B, T), NaN where none is due.

    Nothing is due at a text's first token and beyond its end.
    """
    due = ids[:, 1:].masked_fill(ids[:, 1:] == PADDING, NOTHING)
    losses = token_losses(logits[:, :-1].float(), due).masked_fill(due == NOTHING, torch.nan)
    return F.pad(losses, (1, 0), value=torch.nan)


def at_once(model: GPT, longest: int) -> int:
    """How many texts fit the memory set aside for their weights or logits."""
    weights = model.config.num_layers * model.config.num_heads * longest**2
    return max(1, NUMBERS_AT_ONCE // max(weights, model.vocab_size * longest))


def in_place(block: TransformerBlock, x: Tensor, num_heads: int, empty: float = 0) -> Tensor:
    """What the heads of a layer have (B, H', …) at their numbers: (B, H, …), `empty` if pruned."""
    if len(block.heads) == num_heads:
        return x
    full = x.new_full((len(x), num_heads, *x.shape[2:]), empty)
    full[:, block.heads] = x
    return full


def output_sizes(attention: MultiHeadAttention, inputs: Tensor) -> Tensor:
    """How much each token adds to the stream where a head looks at it: ‖v W_O‖, (B, H, T).

    A head may look at a token that it takes nothing from. Source: Kobayashi et al. 2020,
    "Attention is Not Only a Weight".
    """
    values = attention.split_heads(attention.W_value(inputs))  # (B, H, T, D)
    heads = attention.out_proj.weight.view(-1, attention.num_heads, attention.head_dim)
    return torch.einsum("bhtd,ehd->bhte", values, heads).norm(dim=-1)
