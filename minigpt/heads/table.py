"""The scores of all heads as a table to read, as CSV and as JSON.

Measurement, findings -> text
"""

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from minigpt.heads.findings import Finding, best_first
from minigpt.heads.measure import Measurement

COLUMNS = {  # score -> heading
    "previous": "previous",
    "self": "self",
    "first": "first",
    "duplicate": "same",
    "induction": "induction",
    "induction_random": "random",
    "entropy": "entropy",
    "distance": "distance",
}
UNKNOWN = "–"


def table(measurement: Measurement, findings: Sequence[Finding]) -> list[str]:
    """One line for each head, the best described first; at the end that of an even head."""
    heading = ["head", *COLUMNS.values(), "in words"]
    rows = [
        [f.name, *cells(values_of(measurement, f)), f.words] for f in best_first(findings)
    ]
    rows.append(["even", *cells(measurement.even), "a head that looks at all so far alike"])
    widths = [max(len(row[i]) for row in [heading, *rows]) for i in range(len(heading) - 1)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:-1], widths[1:]), row[-1]])
        for row in [heading, *rows]
    ]


def cells(values: dict[str, float]) -> list[str]:
    return [number(values.get(name, math.nan), 1 if name == "distance" else 2) for name in COLUMNS]


def number(value: float, digits: int) -> str:
    return UNKNOWN if math.isnan(value) else f"{value:.{digits}f}"


def values_of(measurement: Measurement, finding: Finding) -> dict[str, float]:
    """All scores of the finding's head."""
    place = finding.layer, finding.head
    return {name: scores[place].item() for name, scores in measurement.scores.items()}


# ------------------------------------------------------------------------------ for programs


def to_csv(measurement: Measurement, findings: Sequence[Finding]) -> str:
    """A line for each head and one named `even`, a column for each score; empty where unknown."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["head", "layer", "index", "finding", *measurement.scores])
    for f in findings:
        numbers = map(csv_number, values_of(measurement, f).values())
        writer.writerow([f.name, f.layer, f.head, f.words, *numbers])
    writer.writerow(["even", "", "", "", *(csv_number(measurement.even[n]) for n in measurement.scores)])
    return file.getvalue()


def csv_number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def to_json(measurement: Measurement, findings: Sequence[Finding]) -> dict[str, Any]:
    """The same as plain numbers, the best described head first; null where unknown."""
    heads = [
        {"head": f.name, "finding": f.words, "scores": known(values_of(measurement, f))}
        for f in best_first(findings)
    ]
    return {
        "texts": measurement.num_texts,
        "tokens": measurement.num_tokens,
        "heads": heads,
        "even": known(measurement.even),
    }


def known(values: dict[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(v) else round(v, 6) for name, v in values.items()}
