"""What a run directory holds beside its checkpoints, and whether a run may go on in it.

config, corpus -> config.yaml, tokenizer.json, summary.json
"""

import json
import shlex
from pathlib import Path
from typing import Any

from minigpt import checkpoint, saved_runs, storage
from minigpt.command_line import dump_yaml, load_config
from minigpt.config import Config
from minigpt.data import Corpus
from minigpt.errors import CONFIG, DATA, UserError

WRITTEN_LATER = ("metrics.jsonl", "samples.txt", "loss.png", "summary.json")


def start(run_dir: Path, config: Config, corpus: Corpus) -> None:
    """Writes what belongs to the whole run; raises UserError where a run already lives."""
    tidy_up(run_dir)
    if saved_runs.checkpoints(run_dir):
        advice = f"continue it with --resume {run_dir} or choose another run_dir"
        raise UserError(f"{run_dir}: already holds a run; {advice}", CONFIG)
    describe(run_dir, config, corpus)


def tidy_up(run_dir: Path) -> None:
    """Removes what a killed process left, and puts back what it was about to replace."""
    for folder in (run_dir, run_dir / "checkpoints"):
        storage.remove_leftovers(folder)


def describe(run_dir: Path, config: Config, corpus: Corpus) -> None:
    storage.require_writable(run_dir / "checkpoints")
    for name in WRITTEN_LATER:
        if (run_dir / name).is_dir():
            message = f"{run_dir / name}: is a folder, and a file is to be written there"
            raise UserError(f"{message}; move it away or choose another run_dir", DATA)
    storage.write_text(run_dir / "config.yaml", dump_yaml(config))
    corpus.tokenizer.save(run_dir / "tokenizer.json")


def resume(run_dir: Path, config: Config, corpus: Corpus) -> tuple[Path, list[str]]:
    """The checkpoint to go on from, and warnings; raises UserError where it would not fit."""
    tidy_up(run_dir)
    folder, damaged = saved_runs.last_good(run_dir)
    if folder is None:
        reason = "all its checkpoints are damaged" if damaged else "holds no checkpoint"
        raise UserError(f"{run_dir}: {reason}; train anew without --resume", DATA)
    refuse_changes(run_dir, config)
    if saved_runs.read_state(folder).corpus != corpus.fingerprint:
        advice = "give the same text, or train anew without --resume"
        raise UserError(f"{run_dir}: the corpus is not the one it was trained on; {advice}", DATA)
    describe(run_dir, config, corpus)
    saved_runs.require_own(folder, config)
    skipped = [f"{path.name} is damaged; going on from {folder.name}" for path in damaged]
    return folder, skipped + changed_surroundings(folder)


def earlier_choices(run_dir: Path, config: Config) -> dict[str, Any]:
    """What was found by trying when the run began, for what `config` leaves open again."""
    before = load_config(run_dir / "config.yaml", [])
    opened = {"precision": "auto", "threads": None}
    return {
        name: getattr(before, name)
        for name, open_value in opened.items()
        if getattr(config, name) == open_value
    }


def refuse_changes(run_dir: Path, config: Config) -> None:
    """Raises UserError where the model or what it reads is no longer what was trained."""
    before = load_config(run_dir / "config.yaml", [])
    for group in ("model", "data"):
        old, new = getattr(before, group).model_dump(), getattr(config, group).model_dump()
        changed = [
            f"{group}.{key} {old[key]} -> {new[key]}"
            for key in old
            if old[key] != new[key] and key != "path"
        ]
        if changed:
            message = f"{run_dir}: can't resume with {', '.join(changed)}"
            raise UserError(f"{message}; train anew, or leave these settings as they were", CONFIG)


def changed_surroundings(folder: Path) -> list[str]:
    """What differs from when the checkpoint was written; results may then differ a little."""
    written = saved_runs.read_manifest(folder)
    return [
        f"{key} was {before} and is now {now}; results may differ slightly"
        for key, now in checkpoint.surroundings().items()
        if (before := getattr(written, key)) != now
    ]


def closing_words(run_dir: Path, exit_code: int) -> str:
    """What a training made, how good it is, and what to do next."""
    summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    run = shlex.quote(str(run_dir))
    lines = [result_line(summary)]
    if exit_code:
        lines.append(f"stopped and saved at step {summary['steps']}; go on with")
        return "\n".join([*lines, f"  python scripts/train.py --resume {run}"])
    pictures = [run_dir / name for name in ("loss.png", "samples.txt")]
    lines.append("made " + ", ".join(map(str, pictures)) + f" and checkpoints in {run_dir}")
    lines.append("next: let it write, look at its attention heads, or have it all in one page")
    scripts = ("generate.py", "inspect_heads.py", "explore.py")
    lines += [f"  python scripts/{script} {run}" for script in scripts]
    return "\n".join(lines)


def result_line(summary: dict[str, Any]) -> str:
    loss, floor = summary["best_val_loss"], summary["floor"]
    parts = [f"{summary['steps']:,} steps in {summary['train_seconds'] / 60:.1f} minutes"]
    if loss is not None:
        parts.append(f"validation loss {loss:.4f} nats per token")
    if floor is not None and loss is not None:
        parts.append(f"{loss - floor:.4f} above the exact floor {floor:.4f}")
    elif summary["bits_per_byte"] is not None:
        parts.append(f"{summary['bits_per_byte']:.3f} bits per byte")
    return ", ".join(parts)
