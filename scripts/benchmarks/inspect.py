"""Looking at a model's heads, with ours and with TransformerLens, on the same weights."""

import argparse
import os
import warnings
from typing import Any

from benchmarks.measuring import Call, describe, machine, milliseconds
from benchmarks.peers import VOCABULARY, Size, our_model
from minigpt.extras import require

SIZE = Size("4x128", 4, 4, 128, 128, 1)
TEXTS, TOKENS = 100, 96
DETECTED: tuple[Any, ...] = ("previous_token_head", "duplicate_token_head", "induction_head")


def inspect(options: argparse.Namespace) -> dict[str, Any]:
    """attention of 4 × 4 heads on 100 texts of 96 tokens, and three scores of it"""
    import torch

    torch.set_num_threads(options.threads)
    print(describe(machine()) + "\n")
    torch.manual_seed(0)
    model = our_model(SIZE).eval()
    ids = torch.randint(VOCABULARY, (8 if options.quick else TEXTS, TOKENS))
    calls = {"ours": our_scores(model, ids), "TransformerLens": lens_scores(model, ids)}
    found = milliseconds(calls, 0.2 if options.quick else 20)
    times = found["TransformerLens"] / found["ours"]
    for name, value in found.items():
        print(f"{name:16} {value / 1000:6.3f} s")
    print(f"ours is {times:.1f} times as fast")
    return {"machine": machine(), "milliseconds": found}


def our_scores(model: Any, ids: Any) -> Call:
    from minigpt.heads import scores
    from minigpt.heads.capture import capture_attention

    def call() -> None:
        weights = capture_attention(model, ids)
        for score in (scores.previous_token, scores.duplicate, scores.prefix_matching):
            score(weights, ids)

    return call


def lens_scores(model: Any, ids: Any) -> Call:
    """Its cache once a text, and its head detector's three patterns on that."""
    require("transformer_lens", "bench", "inspect", "a comparison with TransformerLens")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is fetched
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package's own imports
        from transformer_lens.head_detector import detect_head

        theirs = as_lens(model)

    def call() -> None:
        for text in ids.split(1):
            _, cache = theirs.run_with_cache(text, remove_batch_dim=True)
            theirs.to_tokens = lambda _, text=text: text  # the detector would tokenise a string
            for name in DETECTED:
                detect_head(theirs, "", name, cache=cache)

    return call


def as_lens(model: Any) -> Any:
    from transformer_lens.model_bridge.sources import build_bridge_from_module
    from transformers import GPT2Config, GPT2LMHeadModel

    from minigpt.interop.gpt2 import config_json, to_gpt2

    config = GPT2Config.from_dict(config_json(model.config, model.vocab_size))
    gpt2 = GPT2LMHeadModel(config).eval()
    gpt2.load_state_dict(to_gpt2(model), strict=False)
    return build_bridge_from_module(gpt2, "GPT2LMHeadModel", hf_config=config)
