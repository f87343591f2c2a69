"""For each relation: how well each head finds the right place, and what is lost without it.

Half A of the stories chooses (the best fixed offset, the best head of an untrained twin, the mean
outputs); all numbers that are told come from half B. Intervals hold for all heads and relations
at once.

answers, losses -> Evidence for each relation
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from minigpt.heads.asking import Answers
from minigpt.heads.baselines import baselines, best_offset
from minigpt.heads.intervals import Interval, intervals
from minigpt.heads.relations import RELATIONS, Story

SCORE = "strict"  # the measure that labels rest on


@dataclass(frozen=True)
class Evidence:
    """Of one relation; tensors are (L, H). `twin` is the untrained model's best head's score."""

    relation: str
    num_questions: int
    num_stories: int
    offset: int
    baselines: dict[str, float]
    twin: float
    twin_high: float
    score: Interval
    there: Interval  # more loss, without the head, on the words that depend on the relation
    elsewhere: Tensor  # and on all other words
    best: tuple[int, int]  # the head that scores best on half A

    @property
    def best_baseline(self) -> float:
        """The highest; infinite where nothing was asked, so that nothing is above it."""
        known = (value for value in self.baselines.values() if not math.isnan(value))
        return max(known, default=math.inf)

    @property
    def specificity(self) -> Tensor:
        """How many times more a head is needed there than elsewhere."""
        return self.there.mean / self.elsewhere.clamp(min=1e-9)


def halves(num_stories: int) -> Tensor:
    """True for the stories of half B."""
    return torch.arange(num_stories) % 2 == 1


def weigh(
    answers: Answers, twin: Answers, stories: Sequence[Story], base: Tensor, without: Tensor
) -> list[Evidence]:
    """The evidence for each relation that the stories ask about.

    `base` (S, T) are the losses of half B, `without` (L, H, S, T) those without each head.
    """
    names = [name for name in RELATIONS if any(q.relation == name for q in answers.questions)]
    relation = torch.tensor([names.index(question.relation) for question in answers.questions])
    in_b = halves(answers.num_stories)
    sums, counts = by_story(answers, relation, len(names))
    twin_sums, _ = by_story(twin, relation, len(names))
    score = intervals(sums[in_b], counts[in_b], share=True)
    twin_score = intervals(twin_sums[in_b], counts[in_b], share=True)
    chosen = best_heads(sums[~in_b], counts[~in_b])
    twin_chosen = best_heads(twin_sums[~in_b], counts[~in_b])
    there, elsewhere = lost(stories, names, base, without)
    found = []
    for at, name in enumerate(names):
        mine = [
            (question, bool(in_b[story]))
            for question, story in zip(answers.questions, answers.story_of, strict=True)
            if question.relation == name
        ]
        offset = best_offset([question for question, b in mine if not b])
        told = [question for question, b in mine if b]
        simple = {key: float(v.nanmean()) for key, v in baselines(told, offset).items()}
        found.append(
            Evidence(
                name,
                len(told),
                int((counts[in_b][:, at] > 0).sum()),
                offset,
                simple,
                float(twin_score.mean[at][twin_chosen[at]]),
                float(twin_score.high[at][twin_chosen[at]]),
                part(score, at),
                part(there, at),
                elsewhere[at],
                chosen[at],
            )
        )
    return found


def part(whole: Interval, at: int) -> Interval:
    return Interval(whole.mean[at], whole.low[at], whole.high[at])


def by_story(answers: Answers, relation: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """Sums (S, R, L, H) and counts (S, R, 1, 1) of the score, by story and relation."""
    values = answers.values[SCORE].double()
    place = answers.story_of * number + relation
    sums = values.new_zeros(answers.num_stories * number, *values.shape[1:])
    sums.index_add_(0, place, values)
    counts = torch.bincount(place, minlength=len(sums)).double()
    shape = answers.num_stories, number
    return sums.view(*shape, *values.shape[1:]), counts.view(*shape, 1, 1)


def best_heads(sums: Tensor, counts: Tensor) -> list[tuple[int, int]]:
    """The head with the highest mean, for each relation: (S, R, L, H) -> R pairs."""
    means = (sums.sum(0) / counts.sum(0)).nan_to_num(-1)
    num_heads = means.size(-1)
    return [divmod(int(place), num_heads) for place in means.flatten(1).argmax(1)]


def lost(
    stories: Sequence[Story], names: Sequence[str], base: Tensor, without: Tensor
) -> tuple[Interval, Tensor]:
    """More loss without each head on the words that depend on a relation (R, L, H), elsewhere."""
    more = (without - base).nan_to_num(0).double()  # (L, H, S, T)
    known = ~base.isnan()
    marks = torch.stack([targets(stories, name, base) for name in names]).double()
    sums = torch.einsum("lhst,rst->srlh", more, marks)
    counts = marks.sum(-1).T[..., None, None]  # (S, R, 1, 1)
    rest_sums = more.sum((2, 3)) - sums.sum(0)
    rest_counts = known.sum() - counts.sum(0)
    return intervals(sums, counts), rest_sums / rest_counts


def targets(stories: Sequence[Story], relation: str, base: Tensor) -> Tensor:
    """True at the words that depend on a relation, in the shape of their losses (S, T)."""
    marks = torch.zeros_like(base, dtype=torch.bool)
    for row, story in enumerate(stories):
        for question in story.questions:
            if question.relation == relation:
                marks[row, list(question.targets)] = True
    return marks
