"""Everything the page is told about a run, as plain values.

Inspection -> contents, weights
"""

import platform
from typing import Any

import torch
from torch import Tensor

from minigpt.checkpoint import Run
from minigpt.explorer.cards import cards, legend
from minigpt.explorer.examples import examples
from minigpt.explorer.numbers import packed, packed_weights
from minigpt.explorer.sentences import findings
from minigpt.explorer.training import training
from minigpt.generation import evaluating
from minigpt.heads.effects import mean_outputs
from minigpt.heads.inspection import Inspection
from minigpt.heads.relations import Story
from minigpt.heads.texts import STORY_START
from minigpt.weights import weights_of

REFERENCE_TOKENS, REFERENCE_NUMBERS = 32, 20_000  # logits to compare with
LONGEST_TEXT = 256  # tokens that the page reads at once
MEAN_TEXTS = 256


def contents(look: Inspection) -> dict[str, Any]:
    run = look.run
    texts, cases = examples(look)
    head_cards, curves = cards(look, cases), training(look)
    num_stories = len(look.judgement.stories) if look.judgement else 0
    return {
        "run": run.run_dir.resolve().name,
        "step": run.step,
        "parameters": run.model.num_parameters,
        "model": model_of(run),
        "tokenizer": tokenizer_of(run),
        "opening": STORY_START if run.config.data.source == "stories" else "",
        "sampling": sampling_of(run),
        "texts": texts,
        "first": look.chosen.name,
        "cards": head_cards,
        "legend": legend(look),
        "findings": findings(head_cards, curves, num_stories),
        "training": curves,
        "means": packed(means_of(look)),
        "reference": reference(run, texts[0]["ids"]),
        "measured": measured(look, num_stories),
    }


def weights(run: Run, full: bool) -> dict[str, Any]:
    """The model's numbers, two bytes each unless in `full`."""
    return packed_weights(weights_of(run.model), full)


def model_of(run: Run) -> dict[str, Any]:
    """The shape of the model, as far as its forward pass depends on it."""
    config = run.config.model
    names = ("num_layers", "num_heads", "embed_dim", "head_dim", "context_length")
    more = ("activation", "positions")
    return {name: getattr(config, name) for name in names + more} | {
        "heads": [config.heads_in(layer) for layer in range(config.num_layers)],
        "longest": min(config.context_length, LONGEST_TEXT),
    }


def tokenizer_of(run: Run) -> dict[str, Any]:
    known = run.tokenizer.to_json()
    kept = {name: known[name] for name in ("kind", "tokens")}
    return kept | {"start": run.tokenizer.start_id}


def sampling_of(run: Run) -> dict[str, Any]:
    sample = run.config.sample
    names = ("prompt", "max_new_tokens", "temperature", "top_k", "top_p", "min_p")
    return {name: getattr(sample, name) for name in names} | {"seed": run.config.seed % 2**31}


def means_of(look: Inspection) -> Tensor:
    """The mean output of each head over the texts that it was looked at on: (L, H, D)."""
    if look.judgement is not None:
        told = look.judgement.stories[:MEAN_TEXTS]
    else:
        told = [Story([], ids, ["token"] * len(ids), []) for ids in look.texts.ids]
    return mean_outputs(look.run.model, told).overall


@torch.no_grad()
def reference(run: Run, ids: list[int]) -> dict[str, Any]:
    """A text's logits as PyTorch computes them, for the page to compare with its own.

    Of its last tokens, as many as make `REFERENCE_NUMBERS`, at least one.
    """
    ids = ids[:REFERENCE_TOKENS]
    with evaluating(run.model):
        logits = run.model(torch.tensor([ids]))[0].float()
    rows = min(max(REFERENCE_NUMBERS // logits.size(-1), 1), len(ids))
    return {"ids": ids, "rows": rows, "logits": packed(logits[-rows:])}


def measured(look: Inspection, num_stories: int) -> dict[str, Any]:
    """How the numbers came about."""
    return {
        "stories": num_stories,
        "texts": look.texts.origin,
        "note": look.texts.note,
        "tokens": look.measurement.num_tokens,
        "seed": look.run.config.seed,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
