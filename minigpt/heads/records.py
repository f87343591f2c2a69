"""What was recorded of the heads while a model trained, as it lies on disk.

history.jsonl -> records
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, FiniteFloat, PositiveInt, ValidationError

Table = list[list[float]]  # (L, H), NaN for a head that is not there
Record = dict[str, Any]  # as in `Snapshot`


class Course(BaseModel):
    """One relation at one step: scores with their lower bounds, and the loss of what needs it."""

    score: Table
    low: Table
    baseline: FiniteFloat
    floor: FiniteFloat | None = None
    loss: FiniteFloat | None

    def is_of(self, shape: tuple[int, int]) -> bool:
        """Whether it tells of as many layers and heads."""
        tables = (self.score, self.low)
        return all([*map(len, table)] == [shape[1]] * shape[0] for table in tables)


class Snapshot(BaseModel):
    """All that is recorded at a step."""

    step: PositiveInt
    relations: dict[str, Course]
    slots: dict[str, FiniteFloat]
    generic: dict[str, Table]


def history_path(run_dir: Path) -> Path:
    return run_dir / "heads" / "history.jsonl"


def read_history(path: Path, shape: tuple[int, int] | None = None) -> list[Record]:
    """The records in order, without those that are torn, damaged, or not of this `shape` (L, H).

    None where there is no history.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            record = Snapshot.model_validate_json(line)
        except ValidationError:
            continue
        if shape is None or all(course.is_of(shape) for course in record.relations.values()):
            found.append(record.model_dump())
    return found
