"""What an inspection leaves on disk: numbers for programs, pictures for people.

Inspection -> files
"""

import json
from pathlib import Path

from minigpt import storage
from minigpt.heads import role_files, table
from minigpt.heads.inspection import Inspection


def write_files(look: Inspection, folder: Path, scores: Path | None = None) -> list[Path]:
    """Writes tables and pictures; returns where they are."""
    files = {scores or folder / "scores.csv": scores_csv(look)}
    if look.judgement is not None:
        files |= judged_files(look, folder)
    files |= attention_pictures(look, folder)
    for path, data in files.items():
        storage.write_bytes(path, data)
    return list(files)


def scores_csv(look: Inspection) -> bytes:
    more = {"effect": look.effect, "importance": look.importance}
    known = {name: value for name, value in more.items() if value is not None}
    return table.to_csv(look.measurement, look.findings, known).encode()


def judged_files(look: Inspection, folder: Path) -> dict[Path, bytes]:
    assert look.judgement is not None
    judgement, history = look.judgement, look.history or []
    numbers = json.dumps(role_files.to_json(judgement, history), indent=1, allow_nan=False)
    return {
        folder / "relations.csv": role_files.to_csv(judgement, history).encode(),
        folder / "roles.json": numbers.encode(),
    }


def attention_pictures(look: Inspection, folder: Path) -> dict[Path, bytes]:
    from minigpt.heads.plots import grid_picture, head_picture  # matplotlib takes a second

    alone = len(look.texts.ids) == 1
    shown = "picture and scores" if alone else "picture: one that repeats much, scores: all"
    subtitle = f"{look.run_and_step}; {shown} of {look.texts.origin}"
    title = f"{look.chosen.name} {look.chosen.words}"
    grid = f"{subtitle}; rows look at columns"
    return {
        folder / "attention.png": grid_picture(
            look.weights, look.labels, look.findings, grid
        ).png(),
        folder / f"attention_{look.chosen.name}.png": head_picture(
            look.chosen_weights, look.labels, title, subtitle
        ).png(),
    }
