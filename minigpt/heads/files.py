"""What an inspection leaves on disk: numbers for programs, pictures for people.

Inspection -> files
"""

import json
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from minigpt import storage
from minigpt.heads import arcs, course_plots, relation_plots, role_files, role_plots, table
from minigpt.heads.capture import capture_attention
from minigpt.heads.inspection import Inspection
from minigpt.heads.plots import grid_picture, head_picture
from minigpt.heads.role_lines import seen


def write_files(look: Inspection, folder: Path, scores: Path | None = None) -> list[Path]:
    """Writes tables and pictures; returns where they are."""
    files = {scores or folder / "scores.csv": scores_csv(look)} | attention_pictures(look, folder)
    if look.judgement is not None:
        files |= judged_files(look, folder)
    for path, data in files.items():
        storage.write_bytes(path, data)
    return list(files)


def scores_csv(look: Inspection) -> bytes:
    more = {"effect": look.effect, "importance": look.importance}
    known = {name: value for name, value in more.items() if value is not None}
    return table.to_csv(look.measurement, look.findings, known).encode()


def attention_pictures(look: Inspection, folder: Path) -> dict[Path, bytes]:
    """Matrices of all heads and of the chosen one; of a judged one also a text with arcs."""
    alone = len(look.texts.ids) == 1
    shown = "picture and scores" if alone else "picture: one that repeats much, scores: all"
    subtitle = f"{look.run_and_step}; {shown} of {look.texts.origin}"
    title = f"{look.chosen.name} {look.chosen.words}"
    grid = grid_picture(
        look.weights, look.labels, look.findings, f"{subtitle}; rows look at columns"
    )
    head = head_picture(look.chosen_weights, look.labels, title, subtitle)
    return {
        folder / "attention.png": grid.png(),
        folder / f"attention_{look.chosen.name}.png": head.png(),
    }


# ------------------------------------------------------------------------------ runs on stories


def judged_files(look: Inspection, folder: Path) -> dict[Path, bytes]:
    assert look.judgement is not None
    judgement, history = look.judgement, look.history or []
    numbers = json.dumps(role_files.to_json(judgement, history), indent=1, allow_nan=False)
    pictures = {name: role_plots.png(figure) for name, figure in judged_pictures(look).items()}
    return {
        folder / "relations.csv": role_files.to_csv(judgement, history).encode(),
        folder / "roles.json": numbers.encode(),
        **{folder / name: data for name, data in (pictures | arc_pictures(look)).items()},
    }


def judged_pictures(look: Inspection) -> dict[str, Figure]:
    """What the heads do and how it came about, by file name."""
    assert look.judgement is not None
    judgement, where = look.judgement, look.run_and_step
    asked = f"{where}, {len(judgement.stories)} stories"
    found: dict[str, Figure | None] = {
        "head_map.png": role_plots.head_map(judgement, asked),
        "relations.png": relation_plots.relations(judgement, asked),
        "ablation.png": relation_plots.ablation(judgement, asked),
        "offsets.png": course_plots.offsets(look.measurement, where),
        "births.png": course_plots.births(judgement, look.history or [], where),
        "loss_floor.png": course_plots.loss_floor(slots_of(look.run.run_dir), where),
    }
    return {name: figure for name, figure in found.items() if figure is not None}


def slots_of(run_dir: Path) -> dict[str, dict[str, float]]:
    """Loss, floor and share by kind of word, as the training left them; none if it did not."""
    try:
        summary: dict[str, Any] = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return summary.get("slots") or {}


def arc_pictures(look: Inspection) -> dict[str, bytes]:
    """For each relation that a head resolves, one text with arcs from the asked word."""
    assert look.judgement is not None
    found = {}
    for role in look.judgement.roles:
        for label in role.labels:
            if label.kind in ("resolves", "together") and label.relation:
                one = look.judgement.of(label.relation)
                head = role.layer, role.head
                at, question = arcs.telling_case(look.judgement.answers, one, head)
                story = look.judgement.stories[at]
                weights = capture_attention(look.run.model, story.ids)[role.layer, 0, role.head]
                row = beside_first(weights[question.query])
                title = f"{role.name} {label.words}"
                sheet = arcs.story_with_arcs(story, question, row, title, seen(one, head))
                name = "_".join(label.relation.replace("→", "").split())
                found[f"attention_{role.name}_{name}.png"] = sheet.png()
    return found


def beside_first(row: torch.Tensor) -> torch.Tensor:
    """A query's weights (T,) without the first token, where heads rest, summing to 1 again."""
    row = row.clone()
    row[0] = 0
    return row / row.sum().clamp(min=1e-6)
