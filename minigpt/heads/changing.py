"""Heads switched off or given another output, from outside: hooks before `out_proj`.

A head's output (B, T, D) is its slice of what goes into `out_proj`. Whoever replaces it changes
what this head adds to the stream and nothing else.

model, replacements -> a context in which the model computes with them
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from minigpt.generation import device_of, evaluating
from minigpt.heads.capture import at_once, in_place, losses_of, pad
from minigpt.model import GPT, TransformerBlock

Head = tuple[int, int]  # layer, place
Change = Callable[[int, Tensor], Tensor | None]


@contextlib.contextmanager
def changing(model: GPT, change: Change) -> Iterator[None]:
    """Within the block `change` gets each layer's number and its heads' outputs (B, T, H, D).

    What it returns takes their place; None leaves them. The hooks go when the block ends.
    """
    handles = []

    def watch(layer: int, block: TransformerBlock) -> None:
        def before(_: Any, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
            outputs = arguments[0].unflatten(-1, (len(block.heads), -1)).transpose(1, 2)
            outputs = in_place(block, outputs, model.config.num_heads).transpose(1, 2)
            changed = change(layer, outputs)
            if changed is None:
                return None
            return (changed[:, :, block.heads].flatten(-2).to(arguments[0].dtype),)

        handles.append(block.attention.out_proj.register_forward_pre_hook(before))

    try:
        for layer, block in enumerate(model.blocks):
            assert isinstance(block, TransformerBlock)
            watch(layer, block)
        yield
    finally:
        for handle in handles:
            handle.remove()


def replacing(
    model: GPT, replacements: Mapping[Head, Tensor]
) -> contextlib.AbstractContextManager[None]:
    """Within the block these heads put out the given numbers: each (D,) or (B, T, D)."""

    def change(layer: int, outputs: Tensor) -> Tensor | None:
        here = {head: new for (at, head), new in replacements.items() if at == layer}
        if not here:
            return None
        outputs = outputs.clone()
        for head, new in here.items():
            outputs[..., head, :] = new
        return outputs

    return changing(model, change)


@torch.no_grad()
def head_outputs(model: GPT, ids: Tensor) -> Tensor:
    """What all heads put out when reading texts (B, T): -> (L, B, T, H, D)."""
    found: list[Tensor] = []
    with evaluating(model), changing(model, lambda _, outputs: found.append(outputs)):
        model(ids.clamp(min=0).to(device_of(model)))
    return torch.stack(found)


def importance(model: GPT, texts: Sequence[Sequence[int]]) -> Tensor:
    """How much the loss would change if a head were turned down a little: (L, H).

    The mean over texts of |z · ∂L/∂z|, where z is the head's output. Source: Michel et al. 2019,
    "Are Sixteen Heads Really Better than One?".
    """
    config = model.config
    total = torch.zeros(config.num_layers, config.num_heads)
    number = at_once(model, max(map(len, texts)))
    for first in range(0, len(texts), number):
        ids = pad(texts[first : first + number]).to(device_of(model))
        dials = torch.ones(config.num_layers, len(ids), config.num_heads, device=ids.device)
        with torch.enable_grad():
            (slopes,) = torch.autograd.grad(loss_with(model, ids, dials.requires_grad_()), dials)
        total += slopes.abs().sum(1).cpu()
    return total / len(texts)


def loss_with(model: GPT, ids: Tensor, dials: Tensor) -> Tensor:
    """The sum of the texts' mean losses with each head's output times its dial (L, B, H)."""

    def turn(layer: int, outputs: Tensor) -> Tensor:
        return outputs * dials[layer, :, None, :, None]

    with evaluating(model), changing(model, turn):
        logits = model(ids.clamp(min=0))
    return losses_of(logits, ids).nanmean(1).sum()
