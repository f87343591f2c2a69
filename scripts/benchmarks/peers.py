"""The same model, GPT-2's architecture, as each side builds it, and their speeds side by side."""

import contextlib
import io
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from minigpt.errors import DATA, UserError


@dataclass(frozen=True)
class Size:
    """A model that all sides build: GPT-2's architecture, without dropout or biases."""

    name: str
    layers: int
    heads: int
    width: int
    context: int
    batch: int


VOCABULARY = 65  # tiny Shakespeare's characters
QUICK = Size("2x32", 2, 2, 32, 32, 1)


def our_model(size: Size) -> Any:
    from minigpt.config import ModelConfig
    from minigpt.model import GPT

    shape: dict[str, Any] = {
        "num_layers": size.layers,
        "num_heads": size.heads,
        "embed_dim": size.width,
    }
    like_gpt2: dict[str, Any] = {"positions": "learned", "activation": "gelu", "qk_norm": False}
    more: dict[str, Any] = {"context_length": size.context, "feed_forward_multiple": 4}
    return GPT(ModelConfig(**shape | like_gpt2 | more), VOCABULARY)


def nanogpt_model(size: Size, folder: Path) -> Any:
    """nanoGPT's model, from a checkout of it on disk."""
    import importlib.util

    file = folder / "model.py"
    if not file.is_file():
        raise UserError(f"--nanogpt {folder}: there is no model.py; name a checkout", DATA)
    spec = importlib.util.spec_from_file_location("nanogpt_model", file)
    assert spec is not None and spec.loader is not None
    module = sys.modules["nanogpt_model"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shape: dict[str, Any] = {"n_layer": size.layers, "n_head": size.heads, "n_embd": size.width}
    more: dict[str, Any] = {
        "block_size": size.context,
        "vocab_size": VOCABULARY,
        "dropout": 0.0,
        "bias": False,
    }
    with contextlib.redirect_stdout(io.StringIO()):
        return module.GPT(module.GPTConfig(**shape, **more))


def transformers_model(size: Size) -> Any:
    """Hugging Face's GPT-2, or None where transformers is not installed."""
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return None
    shape: dict[str, Any] = {"n_layer": size.layers, "n_head": size.heads, "n_embd": size.width}
    drops: dict[str, Any] = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    more: dict[str, Any] = {"n_positions": size.context, "vocab_size": VOCABULARY}
    ends: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None}
    return GPT2LMHeadModel(GPT2Config(**shape, **drops, **more, **ends))


def others(size: Size, nanogpt: Path | None) -> dict[str, Any]:
    """The peers that are there, by name."""
    models = {"transformers": transformers_model(size)}
    if nanogpt is not None:
        models["nanoGPT"] = nanogpt_model(size, nanogpt)
    return {name: model for name, model in models.items() if model is not None}


def ratios(size: Size, tokens: int, times: dict[str, float]) -> dict[str, Any]:
    """Tokens a second of each side, told as a row, beside how many times as fast ours is."""
    rates = {name: 1000 * tokens / time for name, time in times.items()}
    best = max((name for name in rates if name.startswith("ours")), key=rates.__getitem__)
    row = f"{size.name:6} batch {size.batch:<3}"
    for name, rate in rates.items():
        row += f" | {name} {rate:,.0f}"
        row += "" if name.startswith("ours") else f" ({rates[best] / rate:.2f} x)"
    print(row, flush=True)
    return {"size": asdict(size), "tokens a second": rates}
