"""The texts that heads are looked at with: a given one, the run's own, or what it writes itself.

run, text -> Texts
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch

from minigpt.checkpoint import Run
from minigpt.config import SampleConfig
from minigpt.data import Split
from minigpt.errors import DATA, UserError
from minigpt.generation import evaluating, next_ids
from minigpt.heads import targets

NUM_TEXTS = 64
READABLE = 60  # tokens
STORY_START = "\n"  # every story that a model has learned from came after a line break
Progress = Callable[[Iterable[list[int]]], Iterable[list[int]]]


@dataclass(frozen=True)
class Texts:
    """The ids of each text, where they come from, and what there is to know about that."""

    ids: list[list[int]]
    origin: str
    note: str = ""
    are_stories: bool = False  # with words whose relations are known

    @property
    def shown(self) -> list[int]:
        """The one to show: of those short enough to read, the one that repeats itself most."""
        longest = max(READABLE, min(map(len, self.ids)))
        return max((ids for ids in self.ids if len(ids) <= longest), key=num_repeats)


def num_repeats(ids: list[int]) -> int:
    """At how many places the text goes on as it did before."""
    return int(targets.where_it_repeats(torch.tensor([ids])).any(-1).sum())


def given_text(run: Run, text: str) -> Texts:
    """A user's text, as far as the model can read it at once; raises UserError if it is empty.

    Where the model has learned from stories, the line break before a story is put before it.
    """
    if not text:
        raise UserError("--text: empty; give at least one character, or leave --text out", DATA)
    if run.config.data.source == "stories":
        text = STORY_START + text.removeprefix(STORY_START)
    ids = run.tokenizer.encode(text)
    length = run.config.model.context_length
    if len(ids) <= length:
        return Texts([ids], "your text")
    note = f"the text has {len(ids):,} tokens, the model reads {length} at once: the first {length}"
    return Texts([ids[:length]], "the beginning of your text", f"{note} are used")


def own_texts(run: Run, progress: Progress = iter) -> Texts:
    """Validation texts of the run, or texts that it writes where its corpus is gone."""
    try:
        return validation_texts(run)
    except UserError as error:
        return written_texts(run, str(error), progress)


def validation_texts(run: Run) -> Texts:
    """Texts that the model has not learned from; raises UserError where there are none."""
    length = run.config.model.context_length
    if run.config.data.source == "stories":
        stories = validation_stories(run)
        told = [story[:length] for story in stories]
        return Texts(told, f"{NUM_TEXTS} validation stories", are_stories=True)
    corpus = run.open_text()
    if corpus.tokenizer.fingerprint != run.tokenizer.fingerprint:
        raise UserError(f"{corpus.name}: changed since the training", DATA)
    ids = passages(corpus.val, length)
    return Texts(ids, f"{len(ids)} validation passages")


def validation_stories(run: Run) -> list[list[int]]:
    """The first stories that the run was validated with, told anew."""
    from minigpt.stories import corpus, spelling
    from minigpt.tokenizer import Tokenizer

    if Tokenizer.word(spelling.vocabulary()).fingerprint != run.tokenizer.fingerprint:
        raise UserError("stories: their words have changed since the training", DATA)
    return corpus.chunk_of_ids("val", run.config.seed, 0, NUM_TEXTS)


def passages(split: Split, length: int, number: int = NUM_TEXTS) -> list[list[int]]:
    """Up to `number` passages from all over a running text, each of `length` tokens.

    A split that is shorter than one passage is one.
    """
    last = max(len(split.ids) - length, 0)
    starts = np.linspace(0, last, min(number, last // length + 1)).astype(int)
    return [split.ids[start : start + length].tolist() for start in starts]


@torch.inference_mode()
def written_texts(run: Run, reason: str, progress: Progress = iter) -> Texts:
    """What the model writes by itself from a text's start on; `reason` is why that is needed."""
    first, samples = run.tokenizer.start_id, range(NUM_TEXTS)
    sampling = SampleConfig(max_new_tokens=max(run.config.model.context_length - 1, 1))
    start = torch.tensor([[first]])
    with evaluating(run.model):
        steps = next_ids(run.model, start, sampling, run.config.seed, samples, cached=True)
        columns = [[first] * NUM_TEXTS, *progress(steps)]
    ids = [list(text) for text in zip(*columns, strict=True)]
    if run.config.data.source == "stories":
        ids = [first_story(text) for text in ids]
    return Texts(ids, f"{NUM_TEXTS} texts that the model wrote itself", reason)


def first_story(ids: list[int]) -> list[int]:
    """The ids up to where the next story begins, as the first did."""
    return ids[: ids.index(ids[0], 1)] if ids[0] in ids[1:] else ids
