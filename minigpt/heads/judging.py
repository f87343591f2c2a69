"""The whole trial of a model's heads on stories: look, effect, swap, and the roles that follow.

model, stories -> Judgement
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from minigpt.generate import device_of
from minigpt.heads.asking import Answers, ask
from minigpt.heads.changing import Head, importance
from minigpt.heads.effects import (
    Progress,
    Stand,
    heads_of,
    losses,
    mean_outputs,
    over_all_words,
    without_each,
)
from minigpt.heads.evidence import Evidence, halves, targets, weigh
from minigpt.heads.intervals import Interval, intervals
from minigpt.heads.measure import Measurement
from minigpt.heads.relations import Story
from minigpt.heads.roles import Role, looks, matters, roles
from minigpt.heads.swap import Swap, swap
from minigpt.model import GPT


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
    effect_of_mean: Tensor  # the same where the mean over all positions takes its place
    effect_of_zero: Tensor  # or zero
    importance: Tensor
    together: dict[str, Together]
    swaps: dict[str, Swap]  # of each relation's best head

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
    found = weigh(answers, ask(untrained_twin(model, seed), stories), told, base, without)
    effect = over_all_words(base, without)
    nothing = torch.full_like(effect.mean, torch.nan)
    looked_for = [] if fast else [one for one in found if looking(model, one)]
    return Judgement(
        list(stories),
        answers,
        found,
        roles(heads_of(model), found, measurement.scores, effect),
        effect,
        nothing if fast else mean_effect(model, told, means.overall_of, base),
        nothing if fast else mean_effect(model, told, means.zero_of, base),
        importance(model, [story.ids for story in told[:64]]),
        {one.relation: together(model, told, one, means.of, base) for one in looked_for},
        {
            one.relation: test
            for one in looked_for
            if (test := swap(model, told, one.relation, one.best))
        },
    )


def untrained_twin(model: GPT, seed: int) -> GPT:
    """The same model before its first step, from other random numbers."""
    with torch.random.fork_rng():
        torch.manual_seed(seed + 1)
        return GPT(model.config, model.vocab_size).to(device_of(model)).eval()


def mean_effect(model: GPT, stories: Sequence[Story], stand: Stand, base: Tensor) -> Tensor:
    return (without_each(model, stories, stand) - base).nanmean((-2, -1))


# ------------------------------------------------------------------------------ heads together


def looking(model: GPT, one: Evidence) -> tuple[Head, ...]:
    """The heads that find the right places of a relation."""
    return tuple(head for head in heads_of(model) if looks(one, head))


def together(
    model: GPT, stories: Sequence[Story], one: Evidence, stand: Stand, base: Tensor
) -> Together:
    """Without all heads that look for the same, and with only the best head of its layer."""
    heads, (layer, best) = looking(model, one), one.best
    others = [(layer, head) for head in range(model.config.num_heads) if head != best]
    marks = targets(stories, one.relation, base)
    more = losses(model, stories, heads, stand) - base
    without_others = losses(model, stories, others, stand) - base
    there = intervals((more * marks).nan_to_num(0).sum(-1), marks.sum(-1))
    elsewhere = more[~marks].nanmean()
    return Together(heads, there, float(elsewhere), float(without_others[marks].mean()))
