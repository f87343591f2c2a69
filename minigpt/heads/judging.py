"""The whole trial of a model's heads on stories: look, effect, swap, and the roles that follow.

model, stories -> Judgement
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor

from minigpt.generation import device_of
from minigpt.heads.asking import Answers, ask
from minigpt.heads.changing import Head, importance
from minigpt.heads.effects import (
    Means,
    Progress,
    Stand,
    heads_of,
    losses,
    mean_outputs,
    over_all_words,
    without_each,
)
from minigpt.heads.evidence import SCORE, Evidence, halves, targets, weigh
from minigpt.heads.intervals import Interval, intervals
from minigpt.heads.measure import Measurement
from minigpt.heads.relations import Story
from minigpt.heads.roles import Role, looks, matters, roles, with_team
from minigpt.heads.swap import Swap, swap
from minigpt.model import GPT

REPEATS = ("refrain", "surname")
NUM_TEXTS = 64  # for what only illustrates


@dataclass(frozen=True)
class Effects:
    """More loss over all words without each head, where other things take its place."""

    of_mean: Tensor  # its mean over all positions
    of_zero: Tensor


@dataclass(frozen=True)
class Together:
    """More loss without all `heads` that look for the same, there and elsewhere; and there with
    only the best head of its layer.

    Heads may stand in for one another, so without one of them the loss says too little.
    """

    heads: tuple[Head, ...]
    there: Interval
    elsewhere: float
    only_best: float

    @property
    def resolve(self) -> bool:
        """Whether they do together what the rule asks of one head."""
        low, there = float(self.there.low), float(self.there.mean)
        return len(self.heads) > 1 and matters(low, there, self.elsewhere)


@dataclass(frozen=True)
class Judgement:
    """All that was found; tensors are (L, H)."""

    stories: list[Story]
    answers: Answers
    evidence: list[Evidence]
    roles: list[Role]
    effect: Interval  # more loss over all words without each head
    other_effects: Effects
    importance: Tensor
    together: dict[str, Together]
    swaps: dict[str, Swap]  # of each relation's best head
    in_stories: dict[str, Tensor]

    def of(self, relation: str) -> Evidence:
        return next(one for one in self.evidence if one.relation == relation)


def judge(
    model: GPT,
    stories: Sequence[Story],
    measurement: Measurement,
    *,
    seed: int = 0,
    fast: bool = False,
    progress: Progress = iter,
) -> Judgement:
    """Half of the stories choose, the other half tells. `fast` leaves out what only illustrates."""
    in_b = halves(len(stories)).tolist()
    told = [story for story, b in zip(stories, in_b, strict=True) if b]
    means = mean_outputs(model, [story for story, b in zip(stories, in_b, strict=True) if not b])
    answers = ask(model, stories)
    longest = max(len(story.ids) for story in told)
    base = answers.losses[halves(len(stories)), :longest]
    without = without_each(model, told, means.of, progress)
    twin = ask(untrained_twin(model, seed), stories, (SCORE,))
    found = weigh(answers, twin, told, base, without)
    scores = measurement.scores | in_stories(answers)
    effect = over_all_words(base, without)
    looked_for = [one for one in found if looking(model, one)]
    lost = cache(partial(more_loss, model, told, means.of, base))
    teams = {one.relation: together(model, told, one, lost) for one in looked_for}
    nobody = Effects(*(torch.full_like(effect.mean, torch.nan) for _ in range(2)))
    return Judgement(
        list(stories),
        answers,
        found,
        in_teams(roles(heads_of(model), found, scores, effect), teams),
        effect,
        nobody if fast else other_effects(model, told, means),
        importance(model, [story.ids for story in told[:NUM_TEXTS]]),
        teams,
        {} if fast else swaps(model, told, looked_for),
        in_stories(answers),
    )


def in_stories(answers: Answers) -> dict[str, Tensor]:
    """The induction score on refrains and surnames, where going on as before is right: (L, H)."""
    asked = torch.tensor([question.relation in REPEATS for question in answers.questions])
    return {"induction_without_first": answers.values["mass"][asked].mean(0)}


def untrained_twin(model: GPT, seed: int) -> GPT:
    """The same model before its first step, from other random numbers."""
    with torch.random.fork_rng():
        torch.manual_seed(seed + 1)
        return GPT(model.config, model.vocab_size).to(device_of(model)).eval()


def other_effects(model: GPT, stories: Sequence[Story], means: Means) -> Effects:
    """For comparison; on a part of the stories, for they decide nothing."""
    some = stories[:NUM_TEXTS]
    base = losses(model, some)
    of_mean, of_zero = (without_each(model, some, s) for s in (means.overall_of, means.zero_of))
    return Effects((of_mean - base).nanmean((-2, -1)), (of_zero - base).nanmean((-2, -1)))


def swaps(model: GPT, stories: Sequence[Story], found: Sequence[Evidence]) -> dict[str, Swap]:
    tests = {one.relation: swap(model, stories, one.relation, one.best) for one in found}
    return {relation: test for relation, test in tests.items() if test is not None}


def in_teams(alone: list[Role], teams: dict[str, Together]) -> list[Role]:
    """The roles, with heads that resolve together what none of them does alone."""
    single = {label.relation for role in alone for label in role.labels if label.kind == "resolves"}
    for relation, team in teams.items():
        if team.resolve and relation not in single:
            alone = with_team(alone, relation, team.heads)
    return alone


# ------------------------------------------------------------------------------ heads together


def looking(model: GPT, one: Evidence) -> tuple[Head, ...]:
    """The heads that find the right places of a relation."""
    return tuple(head for head in heads_of(model) if looks(one, head))


def more_loss(
    model: GPT, stories: Sequence[Story], stand: Stand, base: Tensor, heads: tuple[Head, ...]
) -> Tensor:
    """How much more each word costs without these heads: (S, T)."""
    return losses(model, stories, heads, stand) - base


def together(
    model: GPT, stories: Sequence[Story], one: Evidence, lost: Callable[[tuple[Head, ...]], Tensor]
) -> Together:
    """Without all heads that look for the same, and with only the best head of its layer."""
    heads, (layer, best) = looking(model, one), one.best
    others = tuple((layer, head) for head in range(model.config.num_heads) if head != best)
    more, without_others = lost(heads), lost(others)
    marks = targets(stories, one.relation, more)
    there = intervals((more * marks).nan_to_num(0).sum(-1), marks.sum(-1))
    elsewhere = more[~marks].nanmean()
    return Together(heads, there, float(elsewhere), float(without_others[marks].mean()))
