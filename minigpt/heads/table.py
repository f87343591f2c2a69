"""The scores of all heads as a table to read, as CSV and as JSON.

Measurement, findings -> text
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from minigpt.heads.findings import Finding, best_first
from minigpt.heads.measure import Measurement

COLUMNS = {  # score -> heading
    "previous": "prev",
    "self": "self",
    "first": "first",
    "duplicate": "same",
    "induction": "induct",
    "induction_random": "random",
    "entropy": "entropy",
    "distance": "dist",
}
UNKNOWN = "–"
KEY = [
    "Shares of attention on: the previous token, itself, the first token, the same token before,",
    "what followed that (induction), the same in random text; entropy, 1: even; dist, tokens back.",
]
KEY_WITHOUT = "without: how much more loss a token has without the head, in nats."


def table(
    measurement: Measurement, findings: Sequence[Finding], effect: Tensor | None = None
) -> list[str]:
    """One line for each head, the best described first; at the end that of an even head.

    `effect` (L, H) is how much more loss a token has without each head.
    """
    without = [] if effect is None else ["without"]
    rows = [["head", *COLUMNS.values(), *without, "looks mostly at"]]
    for finding in best_first(findings):
        values = values_of(measurement, finding)
        lost = [] if effect is None else [f"{effect[finding.layer, finding.head]:+.3f}"]
        rows.append([finding.name, *cells(values), *lost, finding.in_short])
    even = cells(measurement.even) + ["" for _ in without]
    rows.append(["even", *even, "all it can see alike, to compare"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:-1]), words])
        for name, *numbers, words in rows
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


def to_csv(
    measurement: Measurement, findings: Sequence[Finding], more: Mapping[str, Tensor] | None = None
) -> str:
    """A line for each head, one named `even` and one `asked`; empty where a score is unknown.

    `more` are further columns, (L, H) each.
    """
    more = more or {}
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["head", "layer", "index", "finding", *measurement.scores, *more])
    for f in findings:
        values = [*values_of(measurement, f).values()]
        values += [float(column[f.layer, f.head]) for column in more.values()]
        writer.writerow([f.name, f.layer, f.head, f.words, *map(csv_number, values)])
    numbers = map(csv_number, (measurement.even[name] for name in measurement.scores))
    writer.writerow(["even", "", "", "", *numbers])
    writer.writerow(["asked", "", "", "", *map(measurement.asked.get, measurement.scores)])
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
        "asked": measurement.asked,
    }


def known(values: dict[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(v) else round(v, 6) for name, v in values.items()}
