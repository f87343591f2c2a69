"""What scripts/inspect_heads.py prints: for people as lines, for programs as JSON.

Inspection, files -> text
"""

import json
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from minigpt.heads import table
from minigpt.heads.findings import best_first
from minigpt.heads.inspection import Inspection
from minigpt.heads.role_files import to_json
from minigpt.heads.role_lines import role_lines
from minigpt.heads.terminal import choose_style, printable, shaded_matrix

WIDTH = 100  # columns, where there is no terminal to ask
MOST_ROWS = 44  # of a matrix in the terminal; the picture has all
EXCERPT = 50  # characters


def report(inspection: Inspection, files: Sequence[Path], stream: TextIO) -> str:
    """All there is to read, as far as `stream` can show it."""
    style = choose_style(stream)
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    labels = [printable(label, stream) for label in inspection.labels]
    matrix = shaded_matrix(inspection.chosen_weights, labels, style, width, MOST_ROWS)
    parts = [*opening(inspection), *matrix, *closing(inspection, files)]
    return "\n".join(printable(line, stream) for line in parts)


def opening(inspection: Inspection) -> list[str]:
    """What was looked at, what the heads do, and the head to show."""
    measurement, chosen = inspection.measurement, inspection.chosen
    seen = f"{len(inspection.findings)} heads, seen on {inspection.texts.origin}"
    lines = [f"{inspection.run_and_step}: {seen} ({measurement.num_tokens:,} tokens)"]
    if inspection.texts.note:
        lines.append(f"note: {inspection.texts.note}")
    lines += ["", *(scores(inspection) if inspection.judgement is None else roles(inspection))]
    return [*lines, "", f"{chosen.name} {chosen.words}. Rows look at columns:", ""]


def scores(inspection: Inspection) -> list[str]:
    """The generic scores of all heads as a table."""
    lines = table.table(inspection.measurement, inspection.findings, inspection.effect)
    return [*lines, *table.KEY, *([] if inspection.effect is None else [table.KEY_WITHOUT])]


def roles(inspection: Inspection) -> list[str]:
    """What each head does, with the evidence."""
    assert inspection.judgement is not None
    judgement = inspection.judgement
    number = len(judgement.stories)
    half = f"judged on {number} stories: half of them chose, the other half tells"
    lines = role_lines(judgement, inspection.measurement, inspection.history or [])
    return [f"{half}. Shares of right looks, intervals of 95 % for all heads at once.", "", *lines]


def closing(inspection: Inspection, files: Sequence[Path]) -> list[str]:
    """What was made, and what to do next."""
    command = f"python scripts/inspect_heads.py {shlex.quote(str(inspection.run.run_dir))}"
    return [
        "",
        f"made {', '.join(map(str, files))}",
        "next: look at another head, or at a text of your own",
        f"  {command} --head {another(inspection)}",
        f"  {command} --text={shlex.quote(excerpt(inspection))}",
    ]


def another(inspection: Inspection) -> str:
    """The head to look at next: the best described one of those not shown."""
    others = [f for f in best_first(inspection.findings) if f is not inspection.chosen]
    return others[0].name if others else inspection.chosen.name


def excerpt(inspection: Inspection) -> str:
    """The beginning of the longest line shown, all in tokens that the model knows."""
    text = inspection.run.tokenizer.decode(inspection.texts.shown)
    line = max((line.strip() for line in text.split("\n")), key=len)
    return line if len(line) <= EXCERPT else line[:EXCERPT].rpartition(" ")[0] or line[:EXCERPT]


def as_json(inspection: Inspection, files: Sequence[Path]) -> str:
    """All scores of all heads, with what they were measured on; null where unknown."""
    content = {
        "run": str(inspection.run.run_dir),
        "step": inspection.run.step,
        "seen_on": inspection.texts.origin,
        "note": inspection.texts.note,
        "shown": inspection.chosen.name,
        "files": [str(path) for path in files],
    }
    content |= table.to_json(inspection.measurement, inspection.findings)
    if inspection.judgement is not None:
        content["judgement"] = to_json(inspection.judgement, inspection.history or [])
    return json.dumps(content, indent=2, allow_nan=False)
