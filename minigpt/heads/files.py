"""What an inspection leaves on disk: numbers for programs, pictures for people.

Inspection -> files
"""

import json
from pathlib import Path

from pydantic import BaseModel, FiniteFloat, ValidationError

from minigpt import storage
from minigpt.heads import role_files, table
from minigpt.heads.attention_arcs import attention_arcs
from minigpt.heads.bar_plots import loss_floor, offsets
from minigpt.heads.birth_plot import births
from minigpt.heads.capture import capture_attention
from minigpt.heads.cases import row_of, telling_case, title_of
from minigpt.heads.effect_plot import ablation
from minigpt.heads.inspection import Inspection
from minigpt.heads.map_plot import head_map
from minigpt.heads.plots import grid_picture, head_picture
from minigpt.heads.roles import Role
from minigpt.heads.score_plot import relations
from minigpt.heads.sheet import Sheet


def write_files(look: Inspection, folder: Path, scores: Path | None = None) -> list[Path]:
    """Writes tables and pictures; returns where they are."""
    files = {scores or folder / "scores.csv": scores_csv(look)} | attention_pictures(look, folder)
    if look.judgement is not None:
        files |= judged_files(look, folder)
    for place in {path.parent for path in files}:
        storage.remove_leftovers(place)  # of an inspection that was killed
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
    sheets = judged_pictures(look) | arc_pictures(look)
    return {
        folder / "relations.csv": role_files.to_csv(judgement, history).encode(),
        folder / "roles.json": numbers.encode(),
        **{folder / name: sheet.png() for name, sheet in sheets.items()},
    }


def judged_pictures(look: Inspection) -> dict[str, Sheet]:
    """What the heads do and how it came about, by file name."""
    assert look.judgement is not None
    judgement, where = look.judgement, look.run_and_step
    asked = f"{where}; {len(judgement.stories)} stories"
    slots = slots_of(look.run.run_dir)
    found = {
        "head_map.png": head_map(judgement, asked),
        "relations.png": relations(judgement, asked),
        "ablation.png": ablation(judgement, asked),
        "births.png": births(judgement, look.history or [], where),
        "offsets.png": offsets(look.measurement, where),
        "loss_floor.png": loss_floor(slots, where) if slots else None,
    }
    return {name: sheet for name, sheet in found.items() if sheet is not None}


class Slot(BaseModel):
    """A kind of word: its loss and floor in nats, and its share of all words."""

    loss: FiniteFloat
    floor: FiniteFloat
    share: FiniteFloat


class Summary(BaseModel):
    """What is read of summary.json here."""

    slots: dict[str, Slot] | None = None


def slots_of(run_dir: Path) -> dict[str, dict[str, float]]:
    """The kinds of words as the training left them; none if it did not, or if that is damaged."""
    try:
        summary = Summary.model_validate_json((run_dir / "summary.json").read_bytes())
    except (OSError, ValidationError):
        return {}
    return summary.model_dump()["slots"] or {}


def arc_pictures(look: Inspection) -> dict[str, Sheet]:
    """For each relation that a head resolves, a text with arcs from the asked word."""
    assert look.judgement is not None
    judgement, sheets = look.judgement, {}
    for role in judgement.roles:
        for label in role.labels:
            if label.kind in ("resolves", "together") and label.relation:
                name = "_".join(label.relation.replace("→", "").split())
                sheets[f"attention_{role.name}_{name}.png"] = arcs(look, label.relation, role)
    return sheets


def arcs(look: Inspection, relation: str, role: Role) -> Sheet:
    assert look.judgement is not None
    head = role.layer, role.head
    at, questions = telling_case(look.judgement, relation, head)
    story = look.judgement.stories[at]
    weights = capture_attention(look.run.model, story.ids)[role.layer, 0, role.head].cpu()
    asked = [(question, row_of(weights, question.query)) for question in questions]
    title = title_of(look.judgement, relation, head)
    return attention_arcs(story, asked, title, look.run_and_step)
