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
from minigpt.heads.findings import Finding, best_first
from minigpt.heads.inspection import Inspection
from minigpt.heads.role_files import to_json
from minigpt.heads.role_lines import role_lines
from minigpt.heads.terminal import choose_style, printable, shaded_matrix

WIDTH = 100  # columns, where there is no terminal to ask
MOST_ROWS = 44  # of a matrix in the terminal; the picture has all
EXCERPT = 50  # characters


def report(
    inspection: Inspection, files: Sequence[Path], stream: TextIO, name: str | None = None
) -> str:
    """All there is to read, as far as `stream` can show it; `name` is what the run is found by."""
    style = choose_style(stream)
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    labels = [printable(label, stream) for label in inspection.labels]
    matrix = shaded_matrix(inspection.chosen_weights, labels, style, width, MOST_ROWS)
    parts = [*opening(inspection), *matrix, *closing(inspection, files, name)]
    return "\n".join(printable(line, stream) for line in parts)


def opening(inspection: Inspection) -> list[str]:
    """What was looked at, what the heads do, and the head to show."""
    measurement, chosen = inspection.measurement, inspection.chosen
    seen = f"{counted(len(inspection.findings), 'head')}, seen on {inspection.texts.origin}"
    lines = [f"{inspection.run_and_step}: {seen} ({counted(measurement.num_tokens, 'token')})"]
    if inspection.texts.note:
        lines.append(f"note: {inspection.texts.note}")
    lines += ["", *(scores(inspection) if inspection.judgement is None else roles(inspection))]
    return [*lines, "", f"{chosen.name} {chosen.words}. Rows look at columns:", ""]


def counted(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")


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


def closing(inspection: Inspection, files: Sequence[Path], name: str | None) -> list[str]:
    """What was made, and what to do next."""
    name = shlex.quote(name or str(inspection.run.run_dir))
    options = [f"--head {head.name}" for head in others(inspection)[:1]]
    if text := excerpt(inspection):
        options.append(f"--text={shlex.quote(text)}")
    lines = ["", f"made {', '.join(map(str, files))}"]
    if options:
        lines.append("next: look at another head, or at a text of your own")
    return lines + [f"  python scripts/inspect_heads.py {name} {option}" for option in options]


def others(inspection: Inspection) -> list[Finding]:
    """The heads not shown, the best described one first."""
    return [f for f in best_first(inspection.findings) if f is not inspection.chosen]


def excerpt(inspection: Inspection) -> str:
    """The beginning of the longest line shown that can be typed, in tokens that the model knows.

    It is empty where there is none, or where as an option it would mean something else.
    """
    text = inspection.run.tokenizer.decode(inspection.texts.shown)
    lines = (line.strip() for line in text.split("\n"))
    line = max((line for line in lines if line.isprintable()), key=len, default="")
    if line == "-" or line.startswith("FILE:"):
        return ""
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
