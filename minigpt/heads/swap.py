"""Swap test: give one head, at one word, what it would have put out in a slightly other story.

The other story is the same but for two words exchanged (two names, objects, colours, an animal's
number), so that another word is right. If the model then writes that word, this head told it.
Source of the idea: Wang et al. 2022, "Interpretability in the Wild" (path patching).

model, stories, relation, head -> Swap
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from minigpt.generation import device_of, evaluating
from minigpt.heads.capture import pad
from minigpt.heads.changing import Head, changing, head_outputs
from minigpt.heads.relations import Question, Story, alike, exchanged
from minigpt.model import GPT
from minigpt.stories import spelling

MOST = 64  # pairs; more tell the same


@dataclass(frozen=True)
class Swap:
    """Over `number` pairs: `moved` is the share of the way that the scores went from the right
    word's lead to that of the whole other story's, `flips` how often the other word won.
    """

    number: int
    moved: float
    flips: float


@dataclass(frozen=True)
class Pair:
    """A story, the one with words exchanged, and which words are right in each at `target`."""

    ids: list[int]
    other_ids: list[int]
    query: int
    target: int
    right: int
    wrong: int


def swap(model: GPT, stories: Sequence[Story], relation: str, head: Head) -> Swap | None:
    """The effect of swapping this head's output at the relation's queries; None without pairs."""
    pairs = [
        pair
        for story in stories
        for question in story.questions
        if question.relation == relation
        for pair in pairs_of(story, question)
    ][:MOST]
    if not pairs:
        return None
    ids = pad([pair.ids for pair in pairs])
    other = pad([pair.other_ids for pair in pairs])
    query = torch.tensor([pair.query for pair in pairs])
    outputs = head_outputs(model, other)[head[0]]  # (B, T, H, D)
    rows = torch.arange(len(pairs))

    def change(layer: int, mine: Tensor) -> Tensor | None:
        if layer != head[0]:
            return None
        mine = mine.clone()
        mine[rows, query, head[1]] = outputs[rows, query, head[1]]
        return mine

    with changing(model, change):
        swapped = lead(model, ids, pairs)
    before, after = lead(model, ids, pairs), lead(model, other, pairs)
    moved = (before - swapped).mean() / (before - after).mean()
    return Swap(len(pairs), float(moved), float((swapped < 0).double().mean()))


def pairs_of(story: Story, question: Question) -> list[Pair]:
    """A pair for each word that must be another one when the words are exchanged."""
    made = exchanged(story, question)
    if made is None:
        return []
    words, wrong = made
    right = story.words[question.gold[0]]
    ids = [spelling.id_of(word) for word in words[: len(story.ids)]]
    pair = Pair(story.ids, ids, question.query, 0, spelling.id_of(right), spelling.id_of(wrong))
    found = []
    for target in question.targets:
        due = story.words[target]
        if question.relation == "agreement":
            other = spelling.id_of(alike(due)[0])
            found.append(replace(pair, target=target, right=spelling.id_of(due), wrong=other))
        elif due == right:
            found.append(replace(pair, target=target))
    return found


@torch.no_grad()
def lead(model: GPT, ids: Tensor, pairs: Sequence[Pair]) -> Tensor:
    """By how much the right word's score is above the wrong one's: (B,)."""
    with evaluating(model):
        logits = model(ids.clamp(min=0).to(device_of(model))).double().cpu()
    rows = torch.arange(len(pairs))
    due = logits[rows, torch.tensor([pair.target - 1 for pair in pairs])]
    right = torch.tensor([pair.right for pair in pairs])
    wrong = torch.tensor([pair.wrong for pair in pairs])
    return due[rows, right] - due[rows, wrong]
