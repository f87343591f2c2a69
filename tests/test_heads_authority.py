"""Scores of heads against an independent authority: TransformerLens's head detector.

It sums the attention inside a pattern over all rows and divides by all attention, which is the
number of tokens; our scores are means over those rows where the question arises. So ours, summed
and divided by the number of tokens, must equal its score.
"""

import os
import warnings

import pytest
import torch
from test_model import GPT2, renamed

from minigpt.config import ModelConfig
from minigpt.heads import scores
from minigpt.heads.capture import capture_attention
from minigpt.model import GPT

os.environ.setdefault("HF_HUB_OFFLINE", "1")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the packages' own imports
    pytest.importorskip("transformer_lens", reason="transformer-lens is not installed")
    import transformers
    from transformer_lens.head_detector import detect_head
    from transformer_lens.model_bridge.sources import build_bridge_from_module

VOCABULARY, LAYERS, HEADS, WIDTH, CONTEXT = 11, 2, 3, 21, 29
TEXTS = [
    [1, 2, 3, 4, 1, 2, 3, 4, 1, 2],
    [5, 6, 7, 5, 6, 8, 5, 6, 7, 0, 9, 5],
    [0, 1, 0, 2, 0, 3, 0, 1, 0, 2, 10, 4, 0],
]


@pytest.fixture(scope="module")
def models():
    """The same GPT-2 twice, with weights so large that heads look at different places."""
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=CONTEXT, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS
    )
    theirs = transformers.GPT2LMHeadModel(config).eval()
    for weight in theirs.parameters():
        torch.nn.init.normal_(weight, std=0.6)
    shape = {"num_layers": LAYERS, "num_heads": HEADS, "embed_dim": WIDTH}
    ours = GPT(ModelConfig(**shape, **GPT2, context_length=CONTEXT), VOCABULARY).eval()
    ours.load_state_dict(renamed(theirs.state_dict()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ours, build_bridge_from_module(theirs, "GPT2LMHeadModel", hf_config=config)


@pytest.mark.parametrize("text", TEXTS)
def test_both_compute_the_same(models, text):
    ours, theirs = models
    ids = torch.tensor([text])
    logits, cache = theirs.run_with_cache(ids)
    torch.testing.assert_close(ours(ids), logits, rtol=1e-4, atol=1e-4)
    patterns = torch.stack([cache["pattern", layer] for layer in range(LAYERS)])
    torch.testing.assert_close(capture_attention(ours, ids), patterns, rtol=1e-4, atol=1e-5)
    assert patterns.amax(-1).mean() > 0.6  # they do look somewhere


def detected(theirs, text, name):
    theirs.to_tokens = lambda _: torch.tensor([text])  # it would tokenise a string
    return detect_head(theirs, "", name)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    ("score", "name"),
    [
        (scores.previous_token, "previous_token_head"),
        (scores.duplicate, "duplicate_token_head"),
        (scores.prefix_matching, "induction_head"),
    ],
)
def test_scores_equal_those_of_the_head_detector(models, text, score, name):
    ours, theirs = models
    weights, ids = capture_attention(ours, text), torch.tensor([text])
    summed = score.by_query(weights, ids).nansum((1, 3)) / len(text)
    torch.testing.assert_close(summed, detected(theirs, text, name), rtol=0, atol=1e-4)


def test_where_a_token_repeats_at_once_the_definitions_differ(models):
    """In "ll" what followed the first l is the second, the query itself: theirs counts it."""
    ours, theirs = models
    text = [1, 2, 2, 3, 2, 2]
    weights, ids = capture_attention(ours, text), torch.tensor([text])
    summed = scores.prefix_matching.by_query(weights, ids).nansum((1, 3)) / len(text)
    itself = weights[:, 0, :, [2, 5], [2, 5]].sum(-1) / len(text)
    found = detected(theirs, text, "induction_head")
    torch.testing.assert_close(summed + itself, found, rtol=0, atol=1e-4)
