"""A training's state on disk, and the way back.

A run directory holds all that is needed to use the model anywhere: `config.yaml`,
`tokenizer.json` and `checkpoints/step-00000400/`. A checkpoint is complete when its manifest
is: sizes and digests of its files, written last. No file is a pickle, none holds a time, so
equal states are equal bytes.

model, optimisers, state -> run directory -> Run
"""

import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from minigpt import distributed, storage
from minigpt.command_line import load_config
from minigpt.config import Config
from minigpt.data import Corpus
from minigpt.errors import NON_FINITE, UserError
from minigpt.model import GPT
from minigpt.saved_runs import (
    FORMAT,
    MANIFEST,
    TrainingState,
    best_checkpoint,
    checkpoints,
    digest,
    find_checkpoint,
    read_state,
    require_own,
    verify,
)
from minigpt.text import open_text
from minigpt.tokenizer import Tokenizer
from minigpt.weights import load_weights, optimizer_tensors, read_tensors, to_bytes, weights_of


@dataclass
class Run:
    """A trained model and what belongs to it."""

    run_dir: Path
    config: Config
    tokenizer: Tokenizer
    model: GPT
    state: TrainingState = field(default_factory=TrainingState)

    @property
    def step(self) -> int:
        return self.state.step

    def open_text(self) -> Corpus:
        """The text that it learned from, cut as it was; raises UserError where that is gone."""
        own = self.tokenizer if self.config.init_from else None
        return open_text(self.config, tokenizer=own)


# ------------------------------------------------------------------------------ writing


def save(
    run_dir: Path,
    state: TrainingState,
    model: nn.Module,
    optimizers: list[torch.optim.Optimizer],
    averaged: dict[str, Tensor] | None = None,
    keep: int = 2,
) -> Path:
    """Writes a checkpoint, reads it back, then removes older ones; returns its folder.

    `averaged` are the weights to use where they are not those that train. The best checkpoint
    and the `keep` newest stay. Of several processes all must call this; the first writes what one
    alone would. Raises UserError when a weight is not finite or the disk is full.
    """
    weights = weights_of(model)
    training = optimizer_tensors(model, optimizers)
    if averaged is not None:
        training |= {f"weights.{name}": tensor for name, tensor in weights.items()}
        weights = averaged
    folder = run_dir / "checkpoints" / f"step-{state.step:08d}"
    if not distributed.is_first():
        return folder
    require_finite(weights | training, state.step)
    with storage.new_folder(folder) as temporary:
        storage.write_bytes(temporary / "model.safetensors", to_bytes(weights))
        storage.write_bytes(temporary / "optimizer.safetensors", to_bytes(training))
        storage.write_json(temporary / "state.json", asdict(state))
        storage.write_json(temporary / MANIFEST, manifest(temporary, model))
    verify(folder)
    prune(run_dir, keep)
    return folder


def manifest(folder: Path, model: nn.Module | None = None) -> dict[str, Any]:
    """What a complete checkpoint consists of, with a digest of this description itself."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": storage.sha256(path)}
        for path in sorted(folder.iterdir())
    }
    content = {"format": FORMAT, "files": files} | surroundings()
    if isinstance(model, GPT):
        content["model"] = model.config.model_dump()
    tokenizer = folder.parent.parent / "tokenizer.json"
    if tokenizer.exists():
        content["tokenizer"] = storage.sha256(tokenizer)
    return content | {"digest": digest(content)}


def surroundings() -> dict[str, Any]:
    """What else decides about the last bits of a result."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "processes": distributed.world_size(),
    }


def require_finite(tensors: dict[str, Tensor], step: int) -> None:
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            message = f"step {step}: {name} is not finite; nothing was saved over the last"
            raise UserError(f"{message} good checkpoint; lower the learning rate", NON_FINITE)


def prune(run_dir: Path, keep: int) -> None:
    """Removes checkpoints that are neither the best nor among the `keep` newest."""
    folders = checkpoints(run_dir)
    spared = {*folders[-max(keep, 2) :], best_checkpoint(run_dir)}
    for folder in folders:
        if folder not in spared:
            storage.remove_folder(folder)


# ------------------------------------------------------------------------------ reading


def load_run(
    run_dir: str | Path, which: str | int = "best", device: str | torch.device = "cpu"
) -> Run:
    """Loads a run to generate from or look into: its `best` or `last` checkpoint, or a step.

    The model is in evaluation mode. Raises UserError when the folder is no run or is damaged.
    """
    while True:
        folder = find_checkpoint(Path(run_dir), which)
        try:
            return load_checkpoint(Path(run_dir), folder, device)
        except UserError:
            if folder.exists():  # else a training made room for a newer one meanwhile: again
                raise


def load_checkpoint(run_dir: Path, folder: Path, device: str | torch.device) -> Run:
    verify(folder)
    config = load_config(run_dir / "config.yaml", [])
    tokenizer = Tokenizer.load(run_dir / "tokenizer.json")
    model = GPT(config.model, tokenizer.vocab_size)
    load_weights(model, read_tensors(folder / "model.safetensors"), str(folder))
    require_own(folder, config)
    return Run(run_dir, config, tokenizer, model.to(device).eval(), read_state(folder))


def starting_weights(config: Config) -> dict[str, Tensor]:
    """The best weights of the run `init_from`, with positions only as far as the context goes."""
    folder = find_checkpoint(Path(str(config.init_from)))
    verify(folder)
    weights = read_tensors(folder / "model.safetensors")
    positions = weights.get("position_embedding.weight")
    if positions is not None:
        weights["position_embedding.weight"] = positions[: config.model.context_length]
    return weights
