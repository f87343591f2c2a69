"""GPT-2 as transformers keeps it: its settings and its weights, to and from ours.

transformers stores GPT-2's matrices as (in, out), and those of queries, keys and values as one.

config.json, {name: tensor} <-> ModelConfig, {name: tensor}
"""

from typing import Any

import torch
from pydantic import BaseModel, Field, ValidationError
from torch import Tensor

from minigpt.config import ModelConfig
from minigpt.errors import DATA, UserError
from minigpt.interop.complete import complete
from minigpt.model import GPT

ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu2": "relu2",
}
THEIR_ACTIVATION = {"gelu_tanh": "gelu_new", "gelu": "gelu", "relu2": "relu2"}
ATTENTION = ("W_query", "W_key", "W_value")
OF_MODEL = {
    "transformer.wte.weight": "token_embedding.weight",
    "transformer.wpe.weight": "position_embedding.weight",
    "transformer.ln_f.weight": "final_norm.weight",
    "transformer.ln_f.bias": "final_norm.bias",
}
OF_BLOCK = {
    "ln_1": "attention_norm",
    "attn.c_proj": "attention.out_proj",
    "ln_2": "feed_forward_norm",
    "mlp.c_fc": "feed_forward.expand",
    "mlp.c_proj": "feed_forward.contract",
}
MATRICES = ("attn.c_proj", "mlp.c_fc", "mlp.c_proj")


class Settings(BaseModel):
    """What of GPT-2's config.json changes what the model computes."""

    model_type: str
    vocab_size: int = Field(ge=1)
    n_positions: int = Field(1024, ge=1)
    n_embd: int = Field(768, ge=1)
    n_layer: int = Field(12, ge=1)
    n_head: int = Field(12, ge=1)
    n_inner: int | None = Field(None, ge=1)
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    add_cross_attention: bool = False
    tie_word_embeddings: bool = True

    def require_expressible(self, where: str) -> None:
        """Raises UserError where our GPT would compute something else."""
        wanted: dict[str, list[Any]] = {
            "model_type": ["gpt2"],
            "activation_function": list(ACTIVATIONS),
            "layer_norm_epsilon": [1e-5],
            "scale_attn_weights": [True],
            "scale_attn_by_inverse_layer_idx": [False],
            "add_cross_attention": [False],
        }
        for name, allowed in wanted.items():
            value = getattr(self, name)
            if value not in allowed:
                known = ", ".join(map(str, allowed))
                message = f"{where}: {name} is {value}; allowed: {known}"
                raise UserError(f"{message}; give a GPT-2 model", DATA)


def read_settings(content: Any, where: str) -> Settings:
    """GPT-2's config.json, checked; raises UserError."""
    if not isinstance(content, dict):
        raise UserError(f"{where}: holds no settings; give GPT-2's own config.json", DATA)
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        message = f"{where}: {name}: {first['msg'].lower()}; give GPT-2's own config.json"
        raise UserError(message, DATA) from None
    settings.require_expressible(where)
    return settings


def model_config(settings: Settings, where: str) -> ModelConfig:
    """Our settings of the same model; raises UserError where they are out of bounds."""
    inner = settings.n_inner or 4 * settings.n_embd
    try:
        return ModelConfig.model_validate(
            {
                "num_layers": settings.n_layer,
                "num_heads": settings.n_head,
                "embed_dim": settings.n_embd,
                "context_length": settings.n_positions,
                "feed_forward_multiple": inner / settings.n_embd,
                "activation": ACTIVATIONS[settings.activation_function],
                "positions": "learned",
                "bias": True,
                "dropout": settings.resid_pdrop,
                "tie_embeddings": settings.tie_word_embeddings,
                "qk_norm": False,
            }
        )
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UserError(f"{where}: {message}", DATA) from None


def obstacles(config: ModelConfig) -> list[str]:
    """The settings of a run that GPT-2 can't express."""
    found = []
    if config.positions != "learned":
        found.append(f"model.positions={config.positions}")
    if config.qk_norm:
        found.append("model.qk_norm=true")
    return found


def config_json(config: ModelConfig, vocab_size: int) -> dict[str, Any]:
    """What transformers' GPT2Config is to hold."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": vocab_size,
        "n_positions": config.context_length,
        "n_embd": config.embed_dim,
        "n_layer": config.num_layers,
        "n_head": config.num_heads,
        "n_inner": config.feed_forward_dim,
        "activation_function": THEIR_ACTIVATION[config.activation],
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": config.tie_embeddings,
    }


# ------------------------------------------------------------------------------ weights


def to_gpt2(model: GPT) -> dict[str, Tensor]:
    """A model's weights as GPT2LMHeadModel names and lays them out; the model must be one."""
    ours, found = complete(model), {}
    for theirs, name in OF_MODEL.items():
        found[theirs] = ours[name]
    for layer in range(model.config.num_layers):
        for kind in ("weight", "bias"):
            for theirs, name in OF_BLOCK.items():
                tensor = ours[f"blocks.{layer}.{name}.{kind}"]
                found[f"transformer.h.{layer}.{theirs}.{kind}"] = (
                    tensor.T if theirs in MATRICES and kind == "weight" else tensor
                )
            parts = [ours[f"blocks.{layer}.attention.{part}.{kind}"] for part in ATTENTION]
            joined = torch.cat(parts)
            found[f"transformer.h.{layer}.attn.c_attn.{kind}"] = (
                joined.T if kind == "weight" else joined
            )
    if not model.config.tie_embeddings:
        found["lm_head.weight"] = ours["head.weight"]
    return {name: tensor.contiguous() for name, tensor in found.items()}


def shapes(config: ModelConfig, vocab_size: int, transposed: bool) -> dict[str, tuple[int, ...]]:
    """The shape of each weight of a GPT-2; `transposed` as transformers has them, (in, out)."""
    width, hidden = config.embed_dim, config.feed_forward_dim
    found: dict[str, tuple[int, ...]] = {
        "transformer.wte.weight": (vocab_size, width),
        "transformer.wpe.weight": (config.context_length, width),
        "transformer.ln_f.weight": (width,),
    }
    matrices = {
        "attn.c_attn": (3 * width, width),
        "attn.c_proj": (width, width),
        "mlp.c_fc": (hidden, width),
        "mlp.c_proj": (width, hidden),
    }
    for layer in range(config.num_layers):
        block = f"transformer.h.{layer}"
        for name, (out, into) in matrices.items():
            found[f"{block}.{name}.weight"] = (into, out) if transposed else (out, into)
            found[f"{block}.{name}.bias"] = (out,)
        for name in ("ln_1", "ln_2"):
            found[f"{block}.{name}.weight"] = found[f"{block}.{name}.bias"] = (width,)
    found["transformer.ln_f.bias"] = (width,)
    if not config.tie_embeddings:
        found["lm_head.weight"] = (vocab_size, width)
    if not config.bias:
        found = {name: shape for name, shape in found.items() if not name.endswith(".bias")}
    return found


def from_gpt2(
    theirs: dict[str, Tensor], config: ModelConfig, transposed: bool
) -> dict[str, Tensor]:
    """The reverse of `to_gpt2`, of weights that `checked` has let through."""
    found = {ours: theirs[name] for name, ours in OF_MODEL.items() if name in theirs}
    if "lm_head.weight" in theirs:
        found["head.weight"] = theirs["lm_head.weight"]
    for layer in range(config.num_layers):
        block = f"transformer.h.{layer}"
        for kind in ("weight", "bias") if config.bias else ("weight",):
            turned = transposed and kind == "weight"
            for name, ours in OF_BLOCK.items():
                tensor = theirs[f"{block}.{name}.{kind}"]
                turn = turned and name in MATRICES
                found[f"blocks.{layer}.{ours}.{kind}"] = tensor.T if turn else tensor
            joined = theirs[f"{block}.attn.c_attn.{kind}"]
            parts = (joined.T if turned else joined).chunk(3)
            for part, tensor in zip(ATTENTION, parts, strict=True):
                found[f"blocks.{layer}.attention.{part}.{kind}"] = tensor
    return {name: tensor.contiguous() for name, tensor in found.items()}


def checked(
    tensors: dict[str, Tensor], wanted: dict[str, tuple[int, ...]], where: str
) -> dict[str, Tensor]:
    """Exactly the wanted weights as float32; raises UserError for the first that is not right."""
    for name, shape in wanted.items():
        if name not in tensors:
            raise wrong(where, f"{name} is missing")
        tensor = tensors[name]
        if not tensor.is_floating_point():
            kind = str(tensor.dtype).removeprefix("torch.")
            raise wrong(where, f"{name} holds {kind}, not floating-point numbers")
        if tensor.shape != shape:
            raise wrong(where, f"{name} is {sizes(tensor.shape)}, not {sizes(shape)}")
        if not tensor.isfinite().all():
            raise wrong(where, f"{name} is not finite")
    for name in sorted(tensors.keys() - wanted.keys()):
        raise wrong(where, f"{name} is too much")
    return {name: tensor.float() for name, tensor in tensors.items()}


def wrong(where: str, what: str) -> UserError:
    return UserError(f"{where}: {what}; give GPT-2 weights that fit their config", DATA)


def sizes(shape: Any) -> str:
    return " × ".join(map(str, shape))
