"""When heads learn: their scores on a few fixed stories, kept while the model trains.

At about 16 steps, spaced evenly on a logarithmic scale, one line goes to `heads/history.jsonl` of
the run: for each relation the scores (L, H) with their lower bounds and the loss of the words that
depend on it, for each slot the loss, and the generic scores. So births can be drawn without a
single extra checkpoint.

step, model -> history.jsonl -> births
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from minigpt import storage
from minigpt.config import Config
from minigpt.heads import scores
from minigpt.heads.asking import Answers, ask
from minigpt.heads.baselines import baselines, best_offset
from minigpt.heads.capture import capture_attention, pad
from minigpt.heads.evidence import SCORE, by_story, targets
from minigpt.heads.intervals import intervals
from minigpt.heads.records import Record, history_path, read_history
from minigpt.heads.relations import Story, stories
from minigpt.heads.roles import MARGIN
from minigpt.model import GPT

NUM_STORIES, GENERIC_STORIES, NUM_STEPS = 64, 16, 16
FIRST_STORY = 10_000  # far from those that are validated with, so that nothing is chosen on them
GENERIC = {
    "previous": scores.previous_token,
    "duplicate": scores.duplicate,
    "induction": scores.induction,
    "first": scores.first_token,
}


def log_spaced(last: int, number: int = NUM_STEPS) -> list[int]:
    """Up to `number` different steps that end with `last`, each so many times the one before.

    They begin at a 256th of the way, where nothing is learned yet.

    >>> log_spaced(512, 4)
    [2, 13, 81, 512]
    """
    first = max(last / 256, 1)
    ratio = last / first
    return sorted({round(first * ratio ** (index / (number - 1))) for index in range(number)})


class Recorder:
    """Looks on while a model trains on stories; call it after every step."""

    def __init__(self, run_dir: Path, config: Config) -> None:
        self.path = history_path(run_dir)
        self.steps = log_spaced(config.train.max_steps)
        self.config = config
        self.stories: list[Story] = []

    def __call__(self, step: int, model: GPT) -> None:
        if step in self.steps:
            if not self.stories:
                self.begin(step)
            storage.append_line(self.path, json.dumps(snapshot(model, self.stories, step)))

    def begin(self, step: int) -> None:
        """Tells the stories; what a stopped training recorded after this step is cut off."""
        length, seed = self.config.model.context_length, self.config.seed
        self.stories = stories("val", seed, NUM_STORIES, length, first=FIRST_STORY)
        kept = [record for record in read_history(self.path) if record["step"] < step]
        storage.write_text(self.path, "".join(json.dumps(record) + "\n" for record in kept))


# ------------------------------------------------------------------------------ one record


def snapshot(model: GPT, stories: Sequence[Story], step: int) -> Record:
    """Everything that is recorded at a step, as plain numbers."""
    answers = ask(model, stories, measures=(SCORE,))
    return {
        "step": step,
        "relations": relation_scores(answers, stories) if answers.questions else {},
        "slots": slot_losses(stories, answers.losses),
        "generic": generic_scores(model, stories),
    }


def relation_scores(answers: Answers, stories: Sequence[Story]) -> dict[str, Any]:
    names = sorted({question.relation for question in answers.questions})
    relation = torch.tensor([names.index(question.relation) for question in answers.questions])
    found = intervals(*by_story(answers, relation, len(names)), share=True)
    return {
        name: {
            "score": rounded(found.mean[at]),
            "low": rounded(found.low[at]),
            "baseline": round(baseline(answers.questions, name), 4),
            "floor": mean_or_none(floors_of(stories, name)),
            "loss": mean_or_none(answers.losses[targets(stories, name, answers.losses)]),
        }
        for at, name in enumerate(names)
    }


def floors_of(stories: Sequence[Story], relation: str) -> Tensor:
    """The lowest loss possible of each word that depends on a relation."""
    return torch.tensor(
        [
            story.floors[target]
            for story in stories
            for question in story.questions
            if question.relation == relation
            for target in question.targets
        ]
    )


def mean_or_none(values: Tensor) -> float | None:
    """None where no word depends on a relation."""
    return round(float(values.mean()), 4) if len(values) else None


def baseline(questions: Sequence[Any], relation: str) -> float:
    """The best that can be had without looking."""
    mine = [question for question in questions if question.relation == relation]
    means = [float(v.nanmean()) for v in baselines(mine, best_offset(mine)).values()]
    return max((mean for mean in means if not math.isnan(mean)), default=1.0)


def slot_losses(stories: Sequence[Story], loss: Tensor) -> dict[str, float]:
    by_slot: dict[str, list[float]] = {}
    for row, story in zip(loss.tolist(), stories, strict=True):
        for place in range(1, len(story.ids)):
            by_slot.setdefault(story.slots[place], []).append(row[place])
    return {slot: round(sum(found) / len(found), 4) for slot, found in sorted(by_slot.items())}


def generic_scores(model: GPT, stories: Sequence[Story]) -> dict[str, list[list[float]]]:
    ids = pad([story.ids for story in stories[:GENERIC_STORIES]])
    weights = capture_attention(model, ids)
    return {name: rounded(score(weights, ids)) for name, score in GENERIC.items()}


def rounded(values: Tensor) -> list[list[float]]:
    return [[round(value, 4) for value in row] for row in values.tolist()]


# ------------------------------------------------------------------------------ births


def birth(history: Sequence[Record], relation: str, head: tuple[int, int]) -> int | None:
    """The first step from which on the head's lower bound stays above the baseline + 0.10."""
    born = None
    for record in history:
        found = record["relations"].get(relation)
        if found is None:
            continue
        above = found["low"][head[0]][head[1]] > found["baseline"] + MARGIN
        born = (born or record["step"]) if above else None
    return born
