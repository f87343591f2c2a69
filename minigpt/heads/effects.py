"""What a head is needed for: how much worse each word is predicted without it.

A head is replaced by its mean output over stories (never over other heads): the mean of the
positions where the same kind of word stands and the same kind of word is due. So the model still
knows that a name is due, but no longer which. The means come from other stories than those whose
losses are compared. Source of the idea: Wang et al. 2022, "Interpretability in the Wild".

model, stories -> losses (S, T) with and without each head
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from minigpt.generation import device_of, evaluating
from minigpt.heads.capture import at_once, losses_of, pad
from minigpt.heads.changing import Head, head_outputs, replacing
from minigpt.heads.intervals import Interval, intervals
from minigpt.heads.relations import Story
from minigpt.model import GPT

Progress = Callable[[Sequence[Head]], Iterable[Head]]
Stand = Callable[[Sequence[Story], Head], Tensor]  # what a head puts out instead
Key = tuple[str, str]  # the slot of a word and of the one after it


@dataclass(frozen=True)
class Means:
    """The mean outputs of all heads by kind of position: (L, H, D) each, and over all positions."""

    by_key: dict[Key, Tensor]
    overall: Tensor

    def of(self, stories: Sequence[Story], head: Head) -> Tensor:
        """What stands for a head's outputs: (B, T, D), zero beyond a story's end."""
        layer, place = head
        rows = [torch.stack([self.by_key.get(key, self.overall)[layer, place] for key in keys(s)])
                for s in stories]  # fmt: skip
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)

    def overall_of(self, _: Sequence[Story], head: Head) -> Tensor:
        return self.overall[head]

    def zero_of(self, _: Sequence[Story], head: Head) -> Tensor:
        return torch.zeros_like(self.overall[head])


def keys(story: Story) -> list[Key]:
    """For each position what stands there and what is due."""
    slots = [*story.slots, "end"]
    return [(slots[place], slots[place + 1]) for place in range(len(story.ids))]


def mean_outputs(model: GPT, stories: Sequence[Story]) -> Means:
    sums: dict[Key, Tensor] = {}
    counts: dict[Key, int] = {}
    for batch in batches(model, stories):
        outputs = head_outputs(model, pad([story.ids for story in batch]))
        outputs = outputs.permute(1, 2, 0, 3, 4)  # (B, T, L, H, D)
        for row, story in enumerate(batch):
            for place, key in enumerate(keys(story)):
                sums[key] = sums[key] + outputs[row, place] if key in sums else outputs[row, place]
                counts[key] = counts.get(key, 0) + 1
    overall = torch.stack(list(sums.values())).sum(0) / sum(counts.values())
    return Means({key: total / counts[key] for key, total in sums.items()}, overall)


def batches(model: GPT, stories: Sequence[Story]) -> Iterator[Sequence[Story]]:
    number = at_once(model, max(len(story.ids) for story in stories))
    for first in range(0, len(stories), number):
        yield stories[first : first + number]


@torch.no_grad()
def losses(
    model: GPT, stories: Sequence[Story], without: Iterable[Head] = (), stand: Stand | None = None
) -> Tensor:
    """The loss of each word of each story: (S, T), NaN for the first word and beyond the end.

    The heads `without` put out what `stand` says.
    """
    width = max(len(story.ids) for story in stories)
    parts = []
    for batch in batches(model, stories):
        ids = pad([story.ids for story in batch]).to(device_of(model))
        replacements: Mapping[Head, Tensor] = {
            head: stand(batch, head).to(ids.device) for head in without if stand is not None
        }
        with evaluating(model), replacing(model, replacements):
            loss = losses_of(model(ids.clamp(min=0)), ids).cpu()
        parts.append(F.pad(loss, (0, width - ids.size(1)), value=torch.nan))
    return torch.cat(parts)


def over_all_words(base: Tensor, without: Tensor) -> Interval:
    """More loss over all words without each head: (S, T), (L, H, S, T) -> (L, H)."""
    more = (without - base).nan_to_num(0).sum(-1)  # (L, H, S)
    return intervals(more.permute(2, 0, 1), (~base.isnan()).sum(-1)[:, None, None])


def without_each(
    model: GPT, stories: Sequence[Story], stand: Stand, progress: Progress = iter
) -> Tensor:
    """The losses without each head in turn: (L, H, S, T), NaN for those that were pruned."""
    found = {head: losses(model, stories, [head], stand) for head in progress(heads_of(model))}
    shape = model.config.num_layers, model.config.num_heads
    all_losses = torch.full((*shape, *next(iter(found.values())).shape), torch.nan)
    for head, lost in found.items():
        all_losses[head] = lost
    return all_losses


def heads_of(model: GPT) -> list[Head]:
    """All heads that were not pruned, by layer and place."""
    config = model.config
    return [(layer, head) for layer in range(config.num_layers) for head in config.heads_in(layer)]
