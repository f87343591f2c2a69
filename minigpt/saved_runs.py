"""Which runs there are, which checkpoints they hold, and whether those are whole.

All this is told without PyTorch, so that a mistake in a name is answered at once. A checkpoint
is a folder `checkpoints/step-00000400/`; it is complete when its manifest is.

runs/ -> run directory -> checkpoint folder
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from minigpt import storage
from minigpt.config import Config
from minigpt.errors import DATA, UserError

FORMAT = 1  # of a checkpoint
MANIFEST = "manifest.json"
PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl")


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
class Manifest:
    """What a checkpoint consists of, and what it was made with and belongs to."""

    format: int
    files: dict[str, dict[str, Any]]
    python: str
    torch: str
    threads: int
    processes: int = 1
    model: dict[str, Any] | None = None  # its settings
    tokenizer: str | None = None  # the digest of its file


def checkpoints(run_dir: Path) -> list[Path]:
    """The run's checkpoint folders, oldest first; what else lies there is no business of ours."""
    folders = [path for path in (run_dir / "checkpoints").glob("step-*") if path.is_dir()]
    return sorted((path for path in folders if path.name[5:].isdecimal()), key=step_of)


def step_of(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))


def verify(folder: Path) -> None:
    """Compares a checkpoint with its manifest; raises UserError naming the damaged file."""
    for name, expected in read_manifest(folder).files.items():
        path = folder / name
        if (found := digest_of(path)) is None or found != expected.get("sha256"):
            raise damaged(path)
    if read_state(folder).step != step_of(folder):
        raise damaged(folder / "state.json")


def read_manifest(folder: Path) -> Manifest:
    """A checkpoint's description of itself; raises UserError where it is not what was written."""
    path = folder / MANIFEST
    try:
        text = storage.read_bytes(path).decode("utf-8")
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise other_format(path, content["format"])
        intact = text == storage.json_text(content) and content.pop("digest") == digest(content)
        found = TypeAdapter(Manifest).validate_python(content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged(path) from None
    if not intact or any("/" in name for name in found.files):
        raise damaged(path)
    return found


def digest_of(path: Path) -> str | None:
    """None where there is no file to read; a disk that can't give it back has damaged it."""
    try:
        return storage.sha256(path) if path.is_file() else None
    except OSError:
        return None


def other_format(path: Path, found: object) -> UserError:
    advice = "use the version of minigpt that wrote it"
    return UserError(f"{path}: format {found!r:.20} is unknown, {FORMAT} is read; {advice}", DATA)


def require_own(folder: Path, config: Config) -> None:
    """Raises UserError where run's config.yaml or tokenizer.json is not what was trained with."""
    written, run_dir = read_manifest(folder), folder.parent.parent
    advice = "put back what it was trained with"
    now = config.model.model_dump()
    for key, value in (written.model or {}).items():
        if key in now and now[key] != value:
            what = f"model.{key} was {value} and is {now[key]}"
            raise UserError(f"{run_dir / 'config.yaml'}: {what}; {advice}", DATA)
    path = run_dir / "tokenizer.json"
    if written.tokenizer and digest_of(path) != written.tokenizer:
        raise UserError(f"{path}: not that of {folder.name}; {advice}", DATA)


def digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def damaged(path: Path) -> UserError:
    advice = "use another checkpoint (--checkpoint STEP) or train again"
    return UserError(f"{path}: damaged or incomplete; {advice}", DATA)


def read_state(folder: Path) -> TrainingState:
    """Where a checkpoint stands; raises UserError where its file is missing or says nothing."""
    path = folder / "state.json"
    try:
        return TypeAdapter(TrainingState).validate_json(storage.read_bytes(path))
    except (OSError, ValueError):
        raise damaged(path) from None


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
        except UserError:
            continue  # damaged: `verify` tells of it when somebody asks for it
        if loss is not None:
            losses[folder] = loss
    return min(losses, key=lambda folder: losses[folder]) if losses else None


def find_checkpoint(run_dir: Path, which: str | int = "best") -> Path:
    """The folder of the `best` or `last` checkpoint or of a step; raises UserError."""
    if run_dir.suffix in PICKLED:
        advice = "convert it to safetensors on your side and give the run's folder"
        raise UserError(f"{run_dir}: pickled weights can run code and are not read; {advice}", DATA)
    advice = "give a folder made by scripts/train.py, such as runs/stories-1"
    try:
        folders = checkpoints(run_dir)
    except OSError as error:
        raise UserError(f"{run_dir}: {error.strerror}; {advice}", DATA) from None
    if not folders:
        raise UserError(f"{run_dir}: holds no checkpoint; {advice}", DATA)
    if which == "best":
        return best_checkpoint(run_dir) or folders[-1]
    if which == "last":
        return folders[-1]
    steps = {step_of(folder): folder for folder in folders}
    if not str(which).isdecimal() or int(which) not in steps:
        allowed = ", ".join(["best", "last", *map(str, steps)])
        raise UserError(f"{run_dir}: no checkpoint {which!r}; there are {allowed}", DATA)
    return steps[int(which)]


def next_name(name: str, root: Path = Path("runs")) -> Path:
    """The first of `runs/name-1`, `runs/name-2`, … that does not exist."""
    number = 1
    while (root / f"{name}-{number}").exists():
        number += 1
    return root / f"{name}-{number}"


def newest_run(root: Path = Path("runs")) -> Path:
    """The run that saved last; raises UserError when there is none."""
    saved = {folder: checkpoints(folder) for folder in root.glob("[!.]*")}  # not half-written ones
    newest = {folder: found[-1].stat().st_mtime for folder, found in saved.items() if found}
    if not newest:
        raise UserError(f"{root}: no trained run; make one with python scripts/train.py", DATA)
    return max(newest, key=lambda folder: newest[folder])
