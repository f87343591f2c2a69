"""All that the page says of one head: labels, evidence, effects, where it looks.

Inspection -> a card for each head
"""

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from minigpt.heads.changing import Head
from minigpt.heads.evidence import Evidence
from minigpt.heads.findings import Finding
from minigpt.heads.history import birth
from minigpt.heads.inspection import Inspection
from minigpt.heads.marks import KINDS, UNLABELLED, kind_of
from minigpt.heads.relations import RELATIONS
from minigpt.heads.role_files import known
from minigpt.heads.role_lines import claims
from minigpt.heads.roles import Role
from minigpt.heads.scores import NUM_OFFSETS

GENERIC = {
    "previous": "the previous token",
    "self": "itself",
    "first": "the first token",
    "duplicate": "the same token before",
    "induction": "what followed that",
    "entropy": "entropy, 1 is even",
}
KIND_OF_SCORE = {"induction": "induction", "duplicate": "duplicate", "first": "resting"}
PLAIN = {  # what kinds mean where no story tells what is right
    "induction": "induction: what followed before",
    "duplicate": "the same token before",
    "resting": "rests on the first token",
    "mostly positional": "looks by place",
    "broad": "broad: looks at everything",
    UNLABELLED: "no single pattern",
}


def cards(look: Inspection, cases: Mapping[Head, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    roles = {} if look.judgement is None else {(r.layer, r.head): r for r in look.judgement.roles}
    return [
        pattern_of(look, finding)
        | effects_of(look, (finding.layer, finding.head))
        | judged(look, roles.get((finding.layer, finding.head)))
        | {"cases": cases.get((finding.layer, finding.head), [])}
        for finding in look.findings
    ]


def legend(look: Inspection) -> dict[str, dict[str, Any]]:
    """Letter, colour and meaning of the kinds of heads."""
    words = {kind: one.words for kind, one in KINDS.items()} if look.judgement else PLAIN
    return {
        kind: {"letter": KINDS[kind].letter, "colour": KINDS[kind].colour, "words": said}
        | {"dark": KINDS[kind].dark}
        for kind, said in words.items()
    }


# ------------------------------------------------------------------------------ any text


def pattern_of(look: Inspection, finding: Finding) -> dict[str, Any]:
    """Where a head looks by place and repetition, and what that is called."""
    head, scores = (finding.layer, finding.head), look.measurement.scores

    def score(name: str) -> float | None:
        return number(scores[name], head) if name in scores else None

    return {
        "name": finding.name,
        "layer": finding.layer,
        "head": finding.head,
        "kind": plain_kind(finding),
        "words": finding.words,
        "claims": [],
        "relations": [],
        "generic": {words: score(name) for name, words in GENERIC.items()},
        "offsets": [score(f"offset_{offset}") for offset in range(NUM_OFFSETS)],
    }


def plain_kind(finding: Finding) -> str:
    if finding.clear:
        return KIND_OF_SCORE.get(finding.score, "mostly positional")
    return "broad" if finding.kind == "everything" else UNLABELLED


def effects_of(look: Inspection, head: Head) -> dict[str, Any]:
    """More loss over all words without the head, and how sensitive the loss is to it."""
    judgement = look.judgement
    return {
        "effect": number(look.effect, head),
        "effect_low": number(judgement.effect.low, head) if judgement else None,
        "effect_high": number(judgement.effect.high, head) if judgement else None,
        "effect_of_mean": number(judgement.other_effects.of_mean, head) if judgement else None,
        "effect_of_zero": number(judgement.other_effects.of_zero, head) if judgement else None,
        "importance": number(look.importance, head),
    }


def number(values: Tensor | None, head: Head) -> float | None:
    return None if values is None else known(float(values[head]))


# ------------------------------------------------------------------------------ stories


def judged(look: Inspection, role: Role | None) -> dict[str, Any]:
    """The labels of a head by rule, with the evidence for each relation."""
    if role is None or look.judgement is None:
        return {}
    lines = claims(look.judgement, look.measurement, look.history or [], role)
    return {
        "kind": kind_of(role),
        "words": role.short,
        "claims": lines,
        "relations": [relation(look, one, role) for one in look.judgement.evidence],
    }


def relation(look: Inspection, one: Evidence, role: Role) -> dict[str, Any]:
    head = role.layer, role.head
    labels = [label.kind for label in role.labels if label.relation == one.relation]
    values = {
        "score": one.score.mean,
        "low": one.score.low,
        "high": one.score.high,
        "there": one.there.mean,
        "there_low": one.there.low,
        "there_high": one.there.high,
        "elsewhere": one.elsewhere,
    }
    return {
        "relation": one.relation,
        "words": RELATIONS[one.relation].words,
        "label": labels[0] if labels else None,
        "questions": one.num_questions,
        "baseline": None if math.isinf(one.best_baseline) else known(one.best_baseline),
        "untrained": known(one.twin),
        "born": birth(look.history or [], one.relation, head),
        **{name: number(value, head) for name, value in values.items()},
    }
