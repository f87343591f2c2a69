"""A run as a folder that transformers loads: weights, settings, tokenizer, model card.

Which architecture it becomes follows from the settings; none of them runs code of ours.

run -> config.json, model.safetensors, tokenizer.json, README.md
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from minigpt import storage
from minigpt.checkpoint import Run
from minigpt.config import ModelConfig
from minigpt.errors import CONFIG, UserError
from minigpt.interop import gpt2, rotary_models
from minigpt.interop.card import card
from minigpt.interop.tokenizers import about, special_ids, to_json


@dataclass(frozen=True)
class Architecture:
    """One of transformers' models, filled with a run's settings and weights."""

    name: str
    config: dict[str, Any]
    weights: dict[str, Tensor]


def choose(run: Run) -> Architecture:
    """The architecture that computes what this run does; raises UserError where none does."""
    config, size = run.config.model, run.model.vocab_size
    if not gpt2.obstacles(config):
        return Architecture("GPT-2", gpt2.config_json(config, size), gpt2.to_gpt2(run.model))
    if rotary_models.obstacles(config):
        raise refusal(run, rotary_models.obstacles(config), "a model of transformers")
    if config.qk_norm:
        settings = rotary_models.apertus_config(config, size)
        return Architecture("Apertus", settings, rotary_models.to_apertus(run.model))
    settings = rotary_models.neox_config(config, size)
    return Architecture("GPT-NeoX", settings, rotary_models.to_neox(run.model))


def require_gpt2(run: Run, what: str) -> ModelConfig:
    """The run's settings; raises UserError naming the one that GPT-2 can't express."""
    found = gpt2.obstacles(run.config.model)
    if found:
        raise refusal(run, found, what)
    return run.config.model


def refusal(run: Run, settings: list[str], what: str) -> UserError:
    allowed = "train with model.positions=learned model.qk_norm=false, which GPT-2 has"
    found = " and ".join(settings)
    return UserError(f"{run.run_dir}: {found} can't be said in {what}; {allowed}", CONFIG)


def export_folder(run: Run, folder: Path) -> str:
    """Writes the folder, whole or not at all; -> a line to print. Raises UserError."""
    from safetensors.torch import save

    found = choose(run)
    mark = next(iter(special_ids(run.tokenizer)), None)
    config = found.config | {
        "bos_token_id": mark,
        "eos_token_id": mark,
        "pad_token_id": None,
        "dtype": "float32",
        "torch_dtype": "float32",
    }
    require_new(folder)
    storage.remove_leftovers(folder.parent, folder.name)
    with storage.new_folder(folder) as new:
        storage.write_json(new / "config.json", config)
        weights = save(found.weights, {"format": "pt"})
        storage.write_bytes(new / "model.safetensors", weights)
        storage.write_json(new / "tokenizer.json", to_json(run.tokenizer))
        length = run.config.model.context_length
        storage.write_json(new / "tokenizer_config.json", about(run.tokenizer, length))
        storage.write_text(new / "README.md", card(run, found.name))
    load = f"AutoModelForCausalLM.from_pretrained({str(folder)!r})"
    return f"{folder}: step {run.step:,} of {run.run_dir} as {found.name}; load it with {load}"


def require_new(path: Path) -> None:
    """Raises UserError where there is more than an empty folder."""
    if path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
        raise UserError(f"{path}: is there already; give another name", CONFIG)
