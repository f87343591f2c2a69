"""What the page shows of a training: its curves, what counting alone reaches, samples, births.

Inspection -> plain values
"""

import json
import re
from typing import Any

import numpy as np

from minigpt.checkpoint import Run
from minigpt.errors import UserError
from minigpt.explorer.ngrams import ngram_losses
from minigpt.heads.history import Record, birth
from minigpt.heads.inspection import Inspection
from minigpt.heads.relations import RELATIONS
from minigpt.loss_plot import curve, smoothed
from minigpt.training_log import HEADER_LINE, read_metrics

MOST_POINTS = 240
TRAIN_TOKENS, VAL_TOKENS = 200_000, 20_000  # to count on, and to measure counting with
TRAIN_STORIES, VAL_STORIES = 3000, 300
LONGEST_SAMPLE = 1200  # characters


def training(look: Inspection) -> dict[str, Any]:
    run = look.run
    records = read_metrics(run.run_dir)
    steps, losses = curve(records, "train_loss")
    return {
        "train": thinned(steps, smoothed(losses) if len(losses) else losses),
        "val": thinned(*curve(records, "val_loss")),
        "floor": floor(run),
        "ngrams": ngrams(run),
        "samples": samples(run),
        "births": births(look),
    }


def thinned(steps: np.ndarray, values: np.ndarray) -> list[list[float]]:
    """At most `MOST_POINTS` of them, the first and the last included; only finite ones."""
    known = np.isfinite(values)
    steps, values = steps[known], values[known]
    at = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), MOST_POINTS)).astype(int))
    return [[int(steps[i]), round(float(values[i]), 4)] for i in at]


def floor(run: Run) -> float | None:
    """The exact lowest loss, where the training knew it."""
    try:
        summary = json.loads((run.run_dir / "summary.json").read_text(encoding="utf-8"))
        value = summary["floor"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return float(value) if isinstance(value, int | float) else None


def ngrams(run: Run) -> dict[int, float]:
    """Losses of counting, by order; none where the corpus is gone."""
    try:
        train, val = some_of_corpus(run)
    except UserError:
        return {}
    found = ngram_losses(train, val, run.tokenizer.vocab_size)
    return {order: round(loss, 4) for order, loss in found.items()}


def some_of_corpus(run: Run) -> tuple[list[int], list[int]]:
    if run.config.data.source == "stories":
        from minigpt.stories.corpus import chunk_of_ids

        told = (("train", TRAIN_STORIES), ("val", VAL_STORIES))
        train, val = (chunk_of_ids(split, run.config.seed, 0, n) for split, n in told)
        return sum(train, []), sum(val, [])
    corpus = run.open_text()
    return corpus.train.ids[:TRAIN_TOKENS].tolist(), corpus.val.ids[:VAL_TOKENS].tolist()


def samples(run: Run) -> list[dict[str, Any]]:
    """What the model wrote on the way: [{step, text}]."""
    path = run.run_dir / "samples.txt"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    _, *parts = re.split(HEADER_LINE, text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [{"step": int(step), "text": said.strip("\n")[:LONGEST_SAMPLE]} for step, said in pairs]


def births(look: Inspection) -> list[dict[str, Any]]:
    """For each relation how the loss of the words that depend on it fell, and who was born when."""
    history = look.history or []
    if not history or look.judgement is None:
        return []
    return [
        {
            "relation": one.relation,
            "words": RELATIONS[one.relation].words,
            "floor": history[-1]["relations"].get(one.relation, {}).get("floor"),
            "loss": losses_of(history, one.relation),
            "heads": born(look, one.relation),
        }
        for one in look.judgement.evidence
        if losses_of(history, one.relation)
    ]


def losses_of(history: list[Record], relation: str) -> list[list[float]]:
    found = [
        (record["step"], record["relations"].get(relation, {}).get("loss")) for record in history
    ]
    return [[step, loss] for step, loss in found if loss is not None]


def born(look: Inspection, relation: str) -> list[dict[str, Any]]:
    """The labelled heads of a relation, and from which step on they found the right places."""
    assert look.judgement is not None
    found = []
    for role in look.judgement.roles:
        step = birth(look.history or [], relation, (role.layer, role.head))
        labels = [label.kind for label in role.labels if label.relation == relation]
        if step is not None and labels:
            found.append({"head": role.name, "step": step, "kind": labels[0]})
    return found
