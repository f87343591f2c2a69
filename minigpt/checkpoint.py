"""A training's state on disk, and the way back.

A run directory holds all that is needed to use the model anywhere: `config.yaml`,
`tokenizer.json` and `checkpoints/step-00000400/`. A checkpoint is complete when its manifest
is: sizes and digests of its files, written last. No file is a pickle, none holds a time, so
equal states are equal bytes.

model, optimisers, state -> run directory -> Run
"""

import hashlib
import json
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from minigpt import storage
from minigpt.command_line import load_config
from minigpt.config import Config
from minigpt.errors import DATA, NON_FINITE, UserError
from minigpt.model import GPT
from minigpt.tokenizer import Tokenizer
from minigpt.weights import load_weights, optimizer_tensors, to_bytes, weights_of

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass
class TrainingState:
    """Where a training stands, beside its weights; losses in nats per token."""

    step: int = 0
    tokens: int = 0
    val_loss: float | None = None
    best_val_loss: float | None = None
    best_step: int | None = None
    evaluations_without_gain: int = 0
    corpus: str = ""  # fingerprint


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
    and the `keep` newest stay. Raises UserError when a weight is not finite or the disk is full.
    """
    weights = weights_of(model)
    training = optimizer_tensors(model, optimizers)
    if averaged is not None:
        training |= {f"weights.{name}": tensor for name, tensor in weights.items()}
        weights = averaged
    require_finite(weights | training, state.step)
    folder = run_dir / "checkpoints" / f"step-{state.step:08d}"
    with storage.new_folder(folder) as temporary:
        storage.write_bytes(temporary / "model.safetensors", to_bytes(weights))
        storage.write_bytes(temporary / "optimizer.safetensors", to_bytes(training))
        storage.write_json(temporary / "state.json", asdict(state))
        storage.write_json(temporary / MANIFEST, manifest(temporary))
    verify(folder)
    prune(run_dir, keep)
    return folder


def manifest(folder: Path) -> dict[str, Any]:
    """What a complete checkpoint consists of, with a digest of this description itself."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": storage.sha256(path)}
        for path in sorted(folder.iterdir())
    }
    content = {"format": FORMAT, "files": files} | surroundings()
    return content | {"digest": digest(content)}


def surroundings() -> dict[str, Any]:
    """What else decides about the last bits of a result."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


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


def checkpoints(run_dir: Path) -> list[Path]:
    """The run's checkpoint folders, oldest first."""
    return sorted((run_dir / "checkpoints").glob("step-*"), key=step_of)


def step_of(folder: Path) -> int:
    number = folder.name.removeprefix("step-")
    return int(number) if number.isdigit() else -1


def verify(folder: Path) -> None:
    """Compares a checkpoint with its manifest; raises UserError naming the damaged file."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        intact = content.pop("digest") == digest(content)
    except (OSError, ValueError, KeyError, AttributeError):
        intact = False
    if not intact:
        raise damaged(folder / MANIFEST)
    for name, expected in content["files"].items():
        path = folder / name
        if not path.is_file() or storage.sha256(path) != expected["sha256"]:
            raise damaged(path)


def damaged(path: Path) -> UserError:
    advice = "use another checkpoint (--checkpoint STEP) or train again"
    return UserError(f"{path}: damaged or incomplete; {advice}", DATA)


def read_state(folder: Path) -> TrainingState:
    return TrainingState(**json.loads((folder / "state.json").read_text(encoding="utf-8")))


def last_good(run_dir: Path) -> tuple[Path | None, list[Path]]:
    """The newest checkpoint that verifies, and the damaged ones that are newer."""
    skipped: list[Path] = []
    for folder in reversed(checkpoints(run_dir)):
        try:
            verify(folder)
            return folder, skipped
        except UserError:
            skipped.append(folder)
    return None, skipped


def best_checkpoint(run_dir: Path) -> Path | None:
    """The checkpoint with the lowest validation loss."""
    losses = {}
    for folder in checkpoints(run_dir):
        try:
            loss = read_state(folder).val_loss
        except (OSError, ValueError, TypeError):
            continue  # damaged: `verify` tells of it when somebody asks for it
        if loss is not None:
            losses[folder] = loss
    return min(losses, key=lambda folder: losses[folder]) if losses else None


def find_checkpoint(run_dir: Path, which: str | int = "best") -> Path:
    """The folder of the `best` or `last` checkpoint or of a step; raises UserError."""
    folders = checkpoints(run_dir)
    if not folders:
        advice = "give a folder made by scripts/train.py, such as runs/stories-1"
        raise UserError(f"{run_dir}: holds no checkpoint; {advice}", DATA)
    if which == "best":
        return best_checkpoint(run_dir) or folders[-1]
    if which == "last":
        return folders[-1]
    steps = {step_of(folder): folder for folder in folders}
    if not str(which).isdigit() or int(which) not in steps:
        allowed = ", ".join(["best", "last", *map(str, steps)])
        raise UserError(f"{run_dir}: no checkpoint {which!r}; there are {allowed}", DATA)
    return steps[int(which)]


def load_run(
    run_dir: str | Path, which: str | int = "best", device: str | torch.device = "cpu"
) -> Run:
    """Loads a run to generate from or look into: its `best` or `last` checkpoint, or a step.

    The model is in evaluation mode. Raises UserError when the folder is no run or is damaged.
    """
    run_dir = Path(run_dir)
    if run_dir.suffix in (".pt", ".pth", ".bin", ".ckpt", ".pkl"):
        advice = "convert it to safetensors on your side and give the run's folder"
        raise UserError(f"{run_dir}: pickled weights can run code and are not read; {advice}", DATA)
    folder = find_checkpoint(run_dir, which)
    verify(folder)
    config = load_config(run_dir / "config.yaml", [])
    tokenizer = Tokenizer.load(run_dir / "tokenizer.json")
    model = GPT(config.model, tokenizer.vocab_size)
    load_weights(model, load_file(folder / "model.safetensors"))
    return Run(run_dir, config, tokenizer, model.to(device).eval(), read_state(folder))


def newest_run(root: Path = Path("runs")) -> Path:
    """The run that saved last; raises UserError when there is none."""
    newest = {
        folder: (checkpoints(folder)[-1]).stat().st_mtime
        for folder in root.glob("*")
        if checkpoints(folder)
    }
    if not newest:
        raise UserError(f"{root}: no trained run; make one with python scripts/train.py", DATA)
    return max(newest, key=lambda folder: newest[folder])
