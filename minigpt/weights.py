"""Weights and optimiser memory as named tensors, ready for a safetensors file.

model, optimisers <-> {name: tensor}
"""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor, nn

from minigpt.distributed import is_shared_out, like, whole
from minigpt.errors import DATA, UserError
from minigpt.model import GPT
from minigpt.saved_runs import damaged

TIED = "head.weight"  # the same tensor as the token embedding, stored once


def to_bytes(tensors: dict[str, Tensor]) -> bytes:
    return tensors_to_bytes({name: tensors[name].contiguous() for name in sorted(tensors)})


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The reverse of `to_bytes`; raises UserError where the file is missing or holds no tensors."""
    try:
        return load_file(path)
    except (OSError, SafetensorError):
        raise damaged(path) from None


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The model's weights by name, whole and on the CPU, a tied head left out."""
    tied = isinstance(model, GPT) and model.config.tie_embeddings
    tensors = model.state_dict().items()
    return {name: whole(tensor).cpu() for name, tensor in tensors if not (tied and name == TIED)}


def load_weights(model: GPT, weights: dict[str, Tensor], where: str = "checkpoint") -> None:
    """The reverse of `weights_of`; raises UserError where names or shapes differ."""
    if model.config.tie_embeddings and "token_embedding.weight" in weights:
        weights = weights | {TIED: weights["token_embedding.weight"]}
    needed = model.state_dict()
    try:
        model.load_state_dict(
            {n: like(weight, needed[n]) if n in needed else weight for n, weight in weights.items()}
        )
    except RuntimeError:
        what = f"does not fit config.yaml and tokenizer.json: {misfit(model, weights)}"
        advice = "put back those that it was trained with"
        raise UserError(f"{where}: {what}; {advice}", DATA) from None


def unsharded(model: GPT) -> GPT:
    """A model that one process can use alone: itself, or a copy where it was shared out."""
    if not any(map(is_shared_out, model.parameters())):
        return model
    copy = GPT(model.config, model.vocab_size)
    load_weights(copy, weights_of(model))
    return copy.train(model.training)


def misfit(model: GPT, weights: dict[str, Tensor]) -> str:
    """The first weight that is not what the model needs, as in: head.weight is 9 × 4, not 8 × 4."""
    sizes = [
        {name: " × ".join(map(str, tensor.shape)) for name, tensor in tensors.items()}
        for tensors in (model.state_dict(), weights)
    ]
    needed, found = sizes
    name = next(name for name in needed | found if needed.get(name) != found.get(name))
    if name in needed and name in found:
        return f"{name} is {found[name]}, not {needed[name]}"
    return f"{name} is {'missing' if name in needed else 'too much'}"


def optimizer_tensors(
    model: nn.Module, optimizers: list[torch.optim.Optimizer]
) -> dict[str, Tensor]:
    """What the optimisers remember, as `optimizer.parameter.key` -> tensor."""
    names: dict[Tensor, str] = {weight: name for name, weight in model.named_parameters()}
    return {
        f"{index}.{names[parameter]}.{key}": whole(tensor).cpu()
        for index, optimizer in enumerate(optimizers)
        for parameter, memory in optimizer.state.items()
        for key, tensor in memory.items()
    }


def fits(memory: Tensor, parameter: Tensor) -> bool:
    """What is remembered is a number for each weight, or one, as the count of steps is."""
    return memory.shape in (parameter.shape, torch.Size())


def load_optimizers(
    model: nn.Module,
    optimizers: list[torch.optim.Optimizer],
    tensors: dict[str, Tensor],
    where: str = "checkpoint",
) -> None:
    """The reverse of `optimizer_tensors`; raises UserError where they are another model's."""
    parameters = dict(model.named_parameters())
    for name, tensor in tensors.items():
        index, _, rest = name.partition(".")
        if index.isdigit():
            parameter_name, _, key = rest.rpartition(".")
            parameter = parameters.get(parameter_name)
            if parameter is None or int(index) >= len(optimizers) or not fits(tensor, parameter):
                raise UserError(f"{where}: {name} is not this model's; train anew", DATA)
            device = "cpu" if key == "step" and not parameter.is_cuda else parameter.device
            kept = tensor if key == "step" else like(tensor, parameter)
            optimizers[int(index)].state[parameter][key] = kept.to(device)
