"""How far one gets without looking: answers that no head is needed for.

Whatever a head scores has to be held against these. The offset is fitted on other stories than
those that it is judged on.

questions -> answers 0 or 1 (or a chance) for each
"""

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from minigpt.heads.relations import Question


def best_offset(questions: Sequence[Question]) -> int:
    """How many tokens back the right place is most often."""
    offsets = Counter(offset for q in questions for offset in {q.query - place for place in q.gold})
    return min(offsets, key=lambda offset: (-offsets[offset], offset), default=0)


def baselines(questions: Sequence[Question], offset: int) -> dict[str, Tensor]:
    """The answers (N,) of: always `offset` back; nearest or first candidate; any of them.

    Where nothing competes with the right places, only the offset can be wrong: the others are NaN.
    """
    return {
        "offset": answers([float(q.query - offset in q.gold) for q in questions]),
        "nearest": answers([right(q, max(q.gold + q.others)) for q in questions]),
        "first": answers([right(q, min(q.gold + q.others)) for q in questions]),
        "any": answers([share(q) for q in questions]),
    }


def answers(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def right(question: Question, place: int) -> float:
    return float(place in question.gold) if question.others else float("nan")


def share(question: Question) -> float:
    if not question.others:
        return float("nan")
    return len(question.gold) / len(question.gold + question.others)
