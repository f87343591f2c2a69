"""A model's weights with nothing left out: every head, every bias.

Other architectures know no layer with fewer heads and no norm without a bias. A head of zeros
adds nothing and a bias of zeros changes nothing, so the function stays the same.

GPT -> {name: tensor}
"""

import torch
from torch import Tensor

from minigpt.config import ModelConfig
from minigpt.model import GPT
from minigpt.weights import weights_of


def complete(model: GPT) -> dict[str, Tensor]:
    """Weights by our names, float32 on the CPU, with zeros for heads and biases that are not."""
    found = {name: weight.float() for name, weight in weights_of(model).items()}
    for layer in range(model.config.num_layers):
        fill_heads(found, model.config, layer)
    for name in [name for name in found if name.endswith(".weight")]:
        bias = name.removesuffix("weight") + "bias"
        if "embedding" not in name and "query_norm" not in name and "key_norm" not in name:
            found.setdefault(bias, torch.zeros(len(found[name])))
    found.pop("head.bias", None)
    return found


def fill_heads(weights: dict[str, Tensor], config: ModelConfig, layer: int) -> None:
    """Puts zeros where a head of this layer was taken out or never was."""
    width, prefix = config.head_dim, f"blocks.{layer}.attention"
    rows = [head * width + row for head in config.heads_in(layer) for row in range(width)]
    for part in ("W_query", "W_key", "W_value"):
        for kind in ("weight", "bias"):
            old = weights.get(f"{prefix}.{part}.{kind}")
            if old is not None:
                full = old.new_zeros(config.num_heads * width, *old.shape[1:])
                full[rows] = old
                weights[f"{prefix}.{part}.{kind}"] = full
    old = weights[f"{prefix}.out_proj.weight"]
    full = old.new_zeros(len(old), config.num_heads * width)
    full[:, rows] = old
    weights[f"{prefix}.out_proj.weight"] = full
