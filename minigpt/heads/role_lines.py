"""What each head does, in lines to read, with the evidence beside every claim.

Judgement, history -> lines
"""

import math
from collections.abc import Sequence

from minigpt.heads.changing import Head
from minigpt.heads.evidence import Evidence
from minigpt.heads.history import Record, birth
from minigpt.heads.judging import Judgement
from minigpt.heads.measure import Measurement
from minigpt.heads.relations import RELATIONS
from minigpt.heads.roles import Label, Role

ORDER = [
    "resolves",
    "together",
    "induction",
    "duplicate",
    "positional",
    "mostly positional",
    "broad",
]
ORDER += ["resting", "looks", "needed"]
BASELINES = {"nearest": "nearest", "first": "first", "any": "chance", "offset": "offset"}
BESIDE = {
    "looks": "looks at the right places, without measurable effect",
    "needed": "needed, but not by looking there (nats lost)",
}
PATTERN_SCORES = {
    "induction": ("induction_without_first", "on what followed before"),
    "duplicate": ("duplicate_without_first", "on the same token before"),
    "positional": ("positional_without_first", "of its looks there"),
    "mostly positional": ("positional_without_first", "of its looks there"),
    "broad": ("entropy", "entropy, 1 is even"),
    "resting": ("rests", "of the words rest on the first"),
}


def role_lines(
    judgement: Judgement, measurement: Measurement, history: Sequence[Record]
) -> list[str]:
    """All heads, the most telling first; then a count."""
    lines = []
    for role in sorted(judgement.roles, key=telling):
        told = claims(judgement, measurement, history, role)
        lines += [f"{role.name if at == 0 else '':6}{text}" for at, text in enumerate(told)]
    return [*lines, "", count(judgement.roles)]


def claims(
    judgement: Judgement, measurement: Measurement, history: Sequence[Record], role: Role
) -> list[str]:
    """Everything said of one head, a line for each claim."""
    labels = sorted(role.labels, key=rank)
    told = [label for label in labels if label.kind not in BESIDE]
    lines = [claim(judgement, measurement, history, role, label) for label in told]
    lines += [beside(judgement, role, kind) for kind in BESIDE if kind in kinds(role)]
    return lines or [f"unlabelled; {without(judgement, (role.layer, role.head))}"]


def rank(label: Label) -> int:
    return ORDER.index(label.kind)


def kinds(role: Role) -> set[str]:
    return {label.kind for label in role.labels}


def beside(judgement: Judgement, role: Role, kind: str) -> str:
    """One line for all relations that a head only looks for, or is only needed for."""
    head, parts = (role.layer, role.head), []
    for label in role.labels:
        if label.kind == kind and label.relation:
            one = judgement.of(label.relation)
            value = one.score.mean if kind == "looks" else one.there.mean
            number = f"{value[head]:.2f}" if kind == "looks" else f"{value[head]:+.2f}"
            parts.append(f"{RELATIONS[label.relation].words} {number}")
    return f"{BESIDE[kind]}: {', '.join(parts)}"


def telling(role: Role) -> tuple[int, int, int, int]:
    first = min(map(rank, role.labels), default=len(ORDER))
    return first, -len(role.labels), role.layer, role.head


def claim(
    judgement: Judgement,
    measurement: Measurement,
    history: Sequence[Record],
    role: Role,
    label: Label,
) -> str:
    head = role.layer, role.head
    if label.relation is None:
        score, words = PATTERN_SCORES[label.kind]
        value = float((measurement.scores | judgement.in_stories)[score][head])
        return f"{label.words}: {value:.2f} {words}; {without(judgement, head)}"
    one = judgement.of(label.relation)
    born = birth(history, label.relation, head)
    lost = needed(one, head)
    if label.kind == "together":
        team = judgement.together[label.relation]
        there = float(team.there.mean)
        lost = f"without all of them {there:+.2f} nats there, {team.elsewhere:+.2f} elsewhere"
    parts = [f"{label.words} {seen(one, head)}; {lost}"]
    return "; ".join(parts + ([f"born at step {born:,}"] if born else []))


def seen(one: Evidence, head: Head) -> str:
    """As in: 0.91 [0.88, 0.93] (of 120; nearest 0.51, offset 0.12, untrained 0.54)."""
    score = one.score
    simple = [f"{word} {one.baselines[key]:.2f}" for key, word in BASELINES.items()
              if not math.isnan(one.baselines[key])]  # fmt: skip
    bounds = f"[{score.low[head]:.2f}, {score.high[head]:.2f}]"
    simple.append(f"untrained {one.twin:.2f}")
    return f"{score.mean[head]:.2f} {bounds} (of {one.num_questions}; {', '.join(simple)})"


def needed(one: Evidence, head: Head) -> str:
    there, elsewhere = float(one.there.mean[head]), float(one.elsewhere[head])
    return f"without it {there:+.2f} nats there, {elsewhere:+.2f} elsewhere"


def without(judgement: Judgement, head: Head) -> str:
    return f"without it {float(judgement.effect.mean[head]):+.3f} nats a word"


def count(roles: Sequence[Role]) -> str:
    """As in: 9 of 16 heads labelled, 3 look but don't matter, 4 unlabelled."""
    only_look = sum(kinds(role) == {"looks"} for role in roles)
    none = sum(not role.labels for role in roles)
    labelled = len(roles) - only_look - none
    looks = f", {only_look} look but don't matter" if only_look else ""
    return f"{labelled} of {len(roles)} heads labelled{looks}, {none} unlabelled"
