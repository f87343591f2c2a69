"""The whole trial of a model's heads on stories: look, effect, swap, and the roles that follow.

model, stories -> Judgement
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from minigpt.generate import device_of
from minigpt.heads import effects, evidence
from minigpt.heads.asking import Answers, ask
from minigpt.heads.changing import Head, importance
from minigpt.heads.effects import Stand, losses, mean_outputs
from minigpt.heads.evidence import Evidence, halves, weigh
from minigpt.heads.intervals import Interval, intervals
from minigpt.heads.measure import Measurement
from minigpt.heads.relations import Story
from minigpt.heads.roles import Role, roles
from minigpt.heads.swap import Swap, swap
from minigpt.model import GPT

Progress = Callable[[Sequence[Head]], Iterable[Head]]
ABOUT_A_RELATION = ("resolves", "looks", "needed")


@dataclass(frozen=True)
class Together:
    """More loss there without all `heads` of one role, and with only the best head of its layer.

    Heads may stand in for one another, so without one of them the loss says too little.
    """

    heads: tuple[Head, ...]
    without_all: float
    only_best: float


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
    base = losses(model, told)
    without = without_each(model, told, means.of, progress)
    found = weigh(answers, ask(untrained_twin(model, seed), stories), told, base, without)
    effect = over_all_words(base, without)
    nothing = torch.full_like(effect.mean, torch.nan)
    heads = [] if fast else list(resolving(found))
    return Judgement(
        list(stories),
        answers,
        found,
        roles(found, measurement.scores, effect),
        effect,
        nothing if fast else mean_effect(model, told, means.overall_of, base),
        nothing if fast else mean_effect(model, told, means.zero_of, base),
        importance(model, [story.ids for story in told[:64]]),
        {name: together(model, told, named, means.of, base, one) for name, named, one in heads},
        {
            one.relation: test
            for one in found
            if not fast and (test := swap(model, told, one.relation, one.best))
        },
    )


def untrained_twin(model: GPT, seed: int) -> GPT:
    """The same model before its first step, from other random numbers."""
    with torch.random.fork_rng():
        torch.manual_seed(seed + 1)
        return GPT(model.config, model.vocab_size).to(device_of(model)).eval()


def heads_of(model: GPT) -> list[Head]:
    return [
        (layer, head)
        for layer in range(model.config.num_layers)
        for head in range(model.config.num_heads)
    ]


def without_each(
    model: GPT, stories: Sequence[Story], stand: Stand, progress: Progress = iter
) -> Tensor:
    """The losses without each head in turn: (L, H, S, T)."""
    heads = heads_of(model)
    found = [losses(model, stories, [head], stand) for head in progress(heads)]
    shape = model.config.num_layers, model.config.num_heads
    return torch.stack(found).unflatten(0, shape)


def over_all_words(base: Tensor, without: Tensor) -> Interval:
    more = (without - base).nan_to_num(0).sum(-1)  # (L, H, S)
    return intervals(more.permute(2, 0, 1), (~base.isnan()).sum(-1)[:, None, None])


def mean_effect(model: GPT, stories: Sequence[Story], stand: Stand, base: Tensor) -> Tensor:
    return (without_each(model, stories, stand) - base).nanmean((-2, -1))


# ------------------------------------------------------------------------------ heads together


def resolving(found: Sequence[Evidence]) -> Iterable[tuple[str, tuple[Head, ...], Evidence]]:
    """For each relation the heads that look at its right places, and are more than one."""
    for one in found:
        good = one.score.low > one.best_baseline
        heads = tuple((int(layer), int(head)) for layer, head in good.nonzero().tolist())
        if heads:
            yield one.relation, heads, one


def together(
    model: GPT,
    stories: Sequence[Story],
    heads: tuple[Head, ...],
    stand: Stand,
    base: Tensor,
    one: Evidence,
) -> Together:
    layer, best = one.best
    others = [(layer, head) for head in range(model.config.num_heads) if head != best]
    marks = evidence.targets(stories, one.relation, base)

    def more(gone: Sequence[Head]) -> float:
        lost = (effects.losses(model, stories, gone, stand) - base)[marks]
        return float(lost.mean())

    return Together(heads, more(heads), more(others))
