"""The texts that heads are looked at with: a given one, the run's own, or what it writes itself.

run, text -> Texts
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch

from minigpt.checkpoint import Run
from minigpt.config import Config, SampleConfig
from minigpt.data import Corpus, Split
from minigpt.errors import DATA, UserError
from minigpt.generate import evaluating, next_ids

NUM_TEXTS = 64
Progress = Callable[[Iterable[list[int]]], Iterable[list[int]]]


@dataclass(frozen=True)
class Texts:
    """Ids of each text, where they come from, and what the user should know about that."""

    ids: list[list[int]]
    origin: str
    note: str = ""

    @property
    def shown(self) -> list[int]:
        """The one to show in pictures."""
        return self.ids[0]


def given_text(run: Run, text: str) -> Texts:
    """A user's text, as far as the model can read it at once; raises UserError if it is empty."""
    ids = run.tokenizer.encode(text)
    context_length = run.config.model.context_length
    if not ids:
        raise UserError("--text: empty; give at least one character, or leave --text out", DATA)
    if len(ids) <= context_length:
        return Texts([ids], "your text")
    note = f"the text has {len(ids)} tokens and the model reads {context_length} at once"
    return Texts([ids[:context_length]], "the beginning of your text", note)


def own_texts(run: Run, progress: Progress = iter) -> Texts:
    """Validation texts of the run, or texts that it writes where its corpus is gone."""
    try:
        corpus = open_corpus(run.config)
    except UserError as error:
        return written_texts(run, str(error), progress)
    if corpus.tokenizer.fingerprint != run.tokenizer.fingerprint:
        return written_texts(run, f"{corpus.name}: changed since the training", progress)
    ids = validation_texts(corpus.val, run.config.model.context_length)
    if not ids:
        return written_texts(run, f"{corpus.name}: has no validation part", progress)
    kind = "passages" if corpus.val.starts is None else "stories"
    return Texts(ids, f"{len(ids)} validation {kind}")


def open_corpus(config: Config) -> Corpus:
    if config.data.source == "stories":
        from minigpt.stories.corpus import open_stories

        return open_stories(config)
    from minigpt.text import open_text

    return open_text(config)


def validation_texts(split: Split, context_length: int, number: int = NUM_TEXTS) -> list[list[int]]:
    """Up to `number` texts from all over a split: its documents, or passages of running text.

    None is longer than the context.
    """
    starts = split.starts
    if starts is None:
        starts = np.arange(0, max(len(split.ids) - context_length, 1), context_length)
    ends = np.minimum(starts + context_length, np.append(starts[1:], len(split.ids)))
    chosen = np.unique(np.linspace(0, len(starts) - 1, number).astype(int))
    spans = zip(starts[chosen], ends[chosen], strict=True)
    return [split.ids[start:end].tolist() for start, end in spans if end > start]


@torch.inference_mode()
def written_texts(run: Run, reason: str, progress: Progress = iter) -> Texts:
    """What the model writes by itself from a text's start on; `reason` is why that is needed."""
    length = run.config.model.context_length
    sampling = SampleConfig(num_samples=NUM_TEXTS, max_new_tokens=max(length - 1, 1))
    start = torch.tensor([[run.tokenizer.start_id]])
    with evaluating(run.model):
        steps = next_ids(run.model, start, sampling, run.config.seed, range(NUM_TEXTS), True)
        columns = [[run.tokenizer.start_id] * NUM_TEXTS, *progress(steps)]
    ids = [list(text[:length]) for text in zip(*columns, strict=True)]
    return Texts(ids, f"{NUM_TEXTS} texts that the model wrote itself", reason)
