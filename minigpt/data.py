"""A corpus as arrays of ids, and the batches that training and evaluation take from it.

A batch is a pure function of (seed, step): there is no loader whose state could be lost, and
evaluating more often cannot change what is trained on.

ids -> (x, y), each (B, T): y is x one token later
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from minigpt.errors import DATA, UserError
from minigpt.tokenizer import Tokenizer

NOTHING = -1  # a target where there is nothing to predict
Window = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Split:
    """The ids (N,) of one part of a corpus; `starts` (S,) are where its documents begin.

    `num_bytes` is the length of its text in UTF-8, for losses that do not depend on the
    tokenizer. Without `starts`, the text is one running whole.
    """

    ids: np.ndarray
    num_bytes: int
    starts: np.ndarray | None = None

    def batch(
        self,
        seed: int,
        step: int,
        micro_step: int = 0,
        rank: int = 0,
        world_size: int = 1,
        *,
        batch_size: int,
        context_length: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Random rows x and y (B, T) of a micro-batch; documents start at a row's first token.

        The rows of a step are one sequence of which micro-steps and ranks take their turn, so
        8 rows at once are 4 times 2 rows.
        """
        row = (micro_step * world_size + rank) * batch_size
        shares = random_shares(seed, step, row, batch_size)
        last = len(self.ids) - context_length - 1
        if self.starts is None:
            first = (shares * (last + 1)).astype(np.int64)
        else:
            usable = np.searchsorted(self.starts, last, side="right")
            first = self.starts[(shares * max(usable, 1)).astype(np.int64)]
        places = first[:, None] + np.arange(context_length + 1)
        rows = self.ids[np.minimum(places, len(self.ids) - 1)].astype(np.int64)
        targets = np.where(places[:, 1:] < len(self.ids), rows[:, 1:], NOTHING)
        return rows[:, :-1], targets

    def windows(self, batch_size: int, context_length: int) -> Iterator[Window]:
        """All rows of the split in order: x, y and the place in `ids` of each target, (B, T).

        Every token that has something before it is predicted exactly once; where a row has
        nothing to predict, y and places are `NOTHING`. Documents are not cut while they fit.
        The last batch may have fewer rows.
        """
        spans = np.array(self.spans(context_length), dtype=np.int64).reshape(-1, 2)
        for index in range(0, len(spans), batch_size):
            first, end = np.hsplit(spans[index : index + batch_size], 2)
            places = first + np.arange(1, context_length + 1)
            known = places < end
            rows = self.ids[np.minimum(places, end - 1) - 1].astype(np.int64)
            targets = self.ids[np.minimum(places, end - 1)].astype(np.int64)
            yield (
                np.where(known, rows, 0),
                np.where(known, targets, NOTHING),
                np.where(known, places, NOTHING),
            )

    def spans(self, context_length: int) -> list[tuple[int, int]]:
        """Where rows begin and end; each begins with the last token of the one before."""
        borders = [] if self.starts is None else self.starts[1:].tolist()
        last = len(self.ids) - 1
        spans, first, fitting = [], 0, 0
        for border in [*borders, last]:
            while border - first > context_length:
                end = fitting if fitting > first else first + context_length
                spans.append((first, end + 1))
                first = end
            fitting = border
        if last > first:
            spans.append((first, last + 1))
        return spans


def random_shares(seed: int, step: int, row: int, number: int) -> np.ndarray:
    """One number in [0, 1) for each of the rows row, row + 1, … of a step: -> (number,)."""
    key = np.random.SeedSequence((seed, step)).generate_state(2, np.uint64)
    bits = np.random.Philox(key=key, counter=row).random_raw(4 * number)  # 4 a count
    return (bits[::4] >> np.uint64(11)) * 2.0**-53


@dataclass(frozen=True)
class Floor:
    """What no model can do better on the validation split: −ln p of each token, in nats.

    `slots` (N,) says what kind of token each is, as an index into `names`.
    """

    names: tuple[str, ...]
    slots: np.ndarray
    surprisal: np.ndarray

    @property
    def mean(self) -> float:
        """Over all tokens but the first, which nothing comes before."""
        return float(self.surprisal[1:].mean(dtype=np.float64))

    def by_slot(self, losses: np.ndarray) -> dict[str, dict[str, float]]:
        """The mean loss and floor of each kind of token; `losses` (N,) are NaN where unknown."""
        known = np.isfinite(losses)
        found = {}
        for index, name in enumerate(self.names):
            here = known & (self.slots == index)
            if here.any():
                found[name] = {
                    "loss": round(float(losses[here].mean(dtype=np.float64)), 4),
                    "floor": round(float(self.surprisal[here].mean(dtype=np.float64)), 4),
                    "share": round(float(here.sum() / known.sum()), 4),
                }
        return found


@dataclass(frozen=True)
class Corpus:
    """What a model is trained on and measured by; `fingerprint` tells corpora apart."""

    name: str
    tokenizer: Tokenizer
    train: Split
    val: Split
    fingerprint: str
    floor: Floor | None = None

    def require_room(self, context_length: int) -> None:
        """Raises UserError where a split is too short to train on or to measure."""
        parts = (
            ("training", self.train, context_length + 1, "smaller"),
            ("validation", self.val, 2, "larger"),
        )
        for name, split, smallest, change in parts:
            found = len(split.ids)
            if found < smallest:
                advice = f"give more text or a {change} data.val_fraction"
                if name == "training" and found > 1:
                    advice = f"set model.context_length to at most {found - 1}, or {advice}"
                message = f"{self.name}: the {name} part has {found} token{'s' * (found != 1)}"
                needed = f"with model.context_length {context_length} it needs {smallest}"
                raise UserError(f"{message}; {needed}; {advice}", DATA)
