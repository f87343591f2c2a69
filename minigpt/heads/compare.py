"""Heads of two runs side by side, matched by what they do and not by where they sit.

Two heads are as alike as their scores: 1 minus the mean difference over all scores that both have.
The most alike pair is matched first, then the most alike of the others.

two inspections -> pairs -> lines
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from minigpt.heads.inspection import Inspection
from minigpt.heads.judging import Judgement
from minigpt.heads.table import number

GENERIC = ("previous", "self", "first", "nearby", "duplicate", "induction", "entropy")


@dataclass(frozen=True)
class Match:
    """Names of a head in each run, how alike they are (1: the same), and what each does."""

    first: str
    second: str
    likeness: float
    first_role: str
    second_role: str


def compare(first: Inspection, second: Inspection) -> list[Match]:
    """Pairs of heads, the most alike first; heads without a partner are left out."""
    names, roles = zip(*(described(look) for look in (first, second)), strict=True)
    profiles = [torch.stack(list(profile(look).values()), 1) for look in (first, second)]
    common = set(profile(first)) & set(profile(second))
    keep = [[key in common for key in profile(look)] for look in (first, second)]
    left, right = (p[:, torch.tensor(k)] for p, k in zip(profiles, keep, strict=True))
    likeness = 1 - (left[:, None] - right[None]).abs().nanmean(-1)
    return [
        Match(names[0][a], names[1][b], value, roles[0][a], roles[1][b])
        for a, b, value in matched(likeness)
    ]


def described(look: Inspection) -> tuple[list[str], list[str]]:
    """The names of a run's heads and what each does, in few words."""
    names = [finding.name for finding in look.findings]
    if look.judgement is None:
        return names, [finding.in_short for finding in look.findings]
    words = {role.name: role.short for role in look.judgement.roles}
    return names, [words[name] for name in names]


def profile(look: Inspection) -> dict[str, Tensor]:
    """All scores by name, one number for each head."""
    layers = torch.tensor([finding.layer for finding in look.findings])
    heads = torch.tensor([finding.head for finding in look.findings])
    scores = {name: look.measurement.scores[name] for name in GENERIC}
    if look.judgement is not None:
        scores |= relation_scores(look.judgement)
    return {name: score[layers, heads].double() for name, score in scores.items()}


def relation_scores(judgement: Judgement) -> dict[str, Tensor]:
    return {one.relation: one.score.mean for one in judgement.evidence}


def matched(likeness: Tensor) -> list[tuple[int, int, float]]:
    """Pairs (row, column, value) from the largest value on, each row and column once."""
    pairs = []
    left = likeness.clone()
    for _ in range(min(left.shape)):
        row, column = divmod(int(left.argmax()), left.size(1))
        pairs.append((row, column, float(likeness[row, column])))
        left[row], left[:, column] = -torch.inf, -torch.inf
    return pairs


def match_lines(matches: Sequence[Match], first: Inspection, second: Inspection) -> list[str]:
    """The pairs as a table to read, and what it leaves out."""
    rows = [[first.run_and_step, second.run_and_step, "alike", "the first …", "the second …"]]
    rows += [
        [m.first, m.second, number(m.likeness, 2), m.first_role, m.second_role] for m in matches
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [*lines, *left_out(matches, first, second)]


def left_out(matches: Sequence[Match], first: Inspection, second: Inspection) -> list[str]:
    """Heads without a partner, and scores that only one of the runs has."""
    lines = []
    for look, paired in (
        (first, {match.first for match in matches}),
        (second, {match.second for match in matches}),
    ):
        names = [finding.name for finding in look.findings if finding.name not in paired]
        if names:
            lines.append(f"without a partner in {look.run_and_step}: {', '.join(names)}")
    if (first.judgement is None) != (second.judgement is None):
        what = "only one of them was asked about stories; compared is where heads look"
        lines.append(f"note: {what}, each run on its own texts")
    return lines
