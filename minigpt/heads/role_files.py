"""Every number of a judgement, for programs: one CSV line a relation and head, or JSON.

Judgement -> CSV, JSON
"""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor

from minigpt.heads.asking import ALL
from minigpt.heads.changing import Head
from minigpt.heads.evidence import Evidence, halves
from minigpt.heads.history import Record, birth
from minigpt.heads.judging import Judgement
from minigpt.heads.relations import Question, Story
from minigpt.heads.roles import Role

SPLITS = ("hard", "easy", "near", "far", "same_gender", "other_gender")
NEAR = 8  # tokens: `near` questions have the right place at most so far back


def to_csv(judgement: Judgement, history: Sequence[Record] = ()) -> str:
    """All numbers of all heads for all relations; empty where nothing was asked."""
    rows = [row for one in judgement.evidence for row in relation_rows(judgement, one, history)]
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: shown(value) for key, value in row.items()})
    return file.getvalue()


def shown(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return "" if value is None else value


def relation_rows(
    judgement: Judgement, one: Evidence, history: Sequence[Record]
) -> Iterator[dict[str, Any]]:
    measures = means(judgement, one.relation)
    for role in judgement.roles:
        head = role.layer, role.head
        labels = [label.kind for label in role.labels if label.relation == one.relation]
        yield {
            "relation": one.relation,
            "head": role.name,
            "label": labels[0] if labels else None,
            "questions": one.num_questions,
            "stories": one.num_stories,
            "score": float(one.score.mean[head]),
            "score_low": float(one.score.low[head]),
            "score_high": float(one.score.high[head]),
            "there": float(one.there.mean[head]),
            "there_low": float(one.there.low[head]),
            "there_high": float(one.there.high[head]),
            "elsewhere": float(one.elsewhere[head]),
            "specificity": float(one.specificity[head]),
            "born": birth(history, one.relation, head),
            "offset": one.offset,
            **{f"baseline_{name}": value for name, value in one.baselines.items()},
            "untrained": one.twin,
            "untrained_high": one.twin_high,
            **{name: float(value[head]) for name, value in measures.items()},
        }


def means(judgement: Judgement, relation: str) -> dict[str, Tensor]:
    """Every measure on half B, (L, H); `strict` also by how hard the question is."""
    answers, in_b = judgement.answers, halves(judgement.answers.num_stories).tolist()
    mine = [
        at
        for at, question in enumerate(answers.questions)
        if question.relation == relation and in_b[answers.story_of[at]]
    ]
    found = {name: answers.values[name][mine].mean(0) for name in ALL}
    for name in SPLITS:
        kind = [
            at
            for at in mine
            if is_of_kind(name, answers.questions[at], judgement.stories[answers.story_of[at]])
        ]
        found[f"strict_{name}"] = answers.values["strict"][kind].mean(0)
    return found


def is_of_kind(name: str, question: Question, story: Story) -> bool:
    return {
        "hard": question.hard,
        "easy": not question.hard,
        "near": question.distance <= NEAR,
        "far": question.distance > NEAR,
        "same_gender": story.same_gender(question),
        "other_gender": not story.same_gender(question),
    }[name]


# ------------------------------------------------------------------------------ JSON


def to_json(judgement: Judgement, history: Sequence[Record] = ()) -> dict[str, Any]:
    """The same with roles, pairs, swaps, importance, and every head's effect."""
    return {
        "stories": len(judgement.stories),
        "roles": [role_json(judgement, role) for role in judgement.roles],
        "relations": [
            {key: known(value) for key, value in row.items()}
            for one in judgement.evidence
            for row in relation_rows(judgement, one, history)
        ],
        "together": {
            relation: {
                "heads": [name_of(head) for head in found.heads],
                "there": known(float(found.there.mean)),
                "there_low": known(float(found.there.low)),
                "elsewhere": known(found.elsewhere),
                "only_best": known(found.only_best),
                "resolve": found.resolve,
            }
            for relation, found in judgement.together.items()
        },
        "swaps": {
            relation: {"pairs": found.number, "moved": known(found.moved), "flips": found.flips}
            for relation, found in judgement.swaps.items()
        },
    }


def role_json(judgement: Judgement, role: Role) -> dict[str, Any]:
    head = role.layer, role.head
    effects = {
        "effect": judgement.effect.mean,
        "effect_low": judgement.effect.low,
        "effect_high": judgement.effect.high,
        "effect_of_mean": judgement.other_effects.of_mean,
        "effect_of_zero": judgement.other_effects.of_zero,
        "importance": judgement.importance,
    }
    numbers = {name: known(float(value[head])) for name, value in effects.items()}
    labels = [{"kind": label.kind, "relation": label.relation, "words": label.words}
              for label in role.labels]  # fmt: skip
    return {"head": role.name, "labels": labels, **numbers}


def name_of(head: Head) -> str:
    return f"L{head[0]}H{head[1]}"


def known(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) or math.isinf(value) else round(value, 6)
    return value
