"""Writing fast: the decoder is the model, and what hangs on rounding is computed again."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import generation as writing
from minigpt.cache import KVCache
from minigpt.config import ModelConfig, SampleConfig
from minigpt.decoding import Decoder
from minigpt.generation import decodes, generate
from minigpt.model import GPT
from minigpt.sampling import Choice
from minigpt.tokenizer import Tokenizer

CONTEXT, BATCH, VOCABULARY = 13, 3, 17
BYTES = Tokenizer.byte()


def random_model(vocab_size=VOCABULARY, **config):
    torch.manual_seed(5)
    sizes = {"num_layers": 2, "num_heads": 5, "embed_dim": 70, "context_length": CONTEXT}
    model = GPT(ModelConfig(**sizes | config), vocab_size).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


# ------------------------------------------------------------------------------ the decoder

SETTINGS = [
    {"positions": positions, "bias": bias, "qk_norm": qk_norm, "activation": activation}
    for positions, bias, qk_norm, activation in itertools.product(
        ("rotary", "learned"), (False, True), (False, True), ("relu2", "gelu", "gelu_tanh")
    )
]
SETTINGS += [
    {"tie_embeddings": False},
    {"first_layer_heads": 2},
    {"pruned": ["L0H1", "L1H0", "L1H3"]},
    {"dropout": 0.5},
]


@pytest.mark.parametrize("config", SETTINGS, ids=lambda config: "-".join(map(str, config.values())))
@torch.inference_mode()
def test_it_scores_as_the_model_does(config):
    model = random_model(**config).double()
    ids = torch.randint(VOCABULARY, (BATCH, CONTEXT))
    expected, cache, decoder = model(ids), KVCache(2, CONTEXT), Decoder(model)
    model(ids[:, :4], cache)
    for place in range(4, CONTEXT):
        found = decoder(ids[:, place : place + 1], cache)
        assert torch.allclose(found, expected[:, place], rtol=1e-9, atol=1e-9)


def test_who_looks_in_by_hooks_sees_every_token():
    model, seen = random_model(BYTES.vocab_size), []
    assert decodes(model)
    hook = model.blocks[0].register_forward_hook(lambda *_: seen.append(1))
    assert not decodes(model)
    generate(model, BYTES, "a", SampleConfig(num_samples=1, max_new_tokens=5), 1)
    hook.remove()
    assert len(seen) == 5 and decodes(model)


# ------------------------------------------------------------------------------ and its rounding

samplings = st.builds(
    SampleConfig,
    temperature=st.sampled_from([0, 1e-8, 0.01, 0.5, 1, 2]),
    top_k=st.sampled_from([None, 0, 1, 3, 100]),
    top_p=st.sampled_from([None, 0, 1e-9, 0.5, 0.9, 1]),
    min_p=st.sampled_from([None, 0.1, 0.5, 1]),
    repetition_penalty=st.sampled_from([1, 1.3, 0.5]),
)


def assert_sure_choices_stay(sampling, seed, error, size, rows):
    """Scores that are off by up to `error` change no choice that was said to be sure."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, size, dtype=torch.float64, generator=generator)
    logits[::3] = logits[::3].round(decimals=1)  # ties
    uniforms = torch.rand(rows, dtype=torch.float64, generator=generator)
    seen = torch.rand(rows, size, generator=generator) < 0.3
    noise = 2 * torch.rand(rows, size, dtype=torch.float64, generator=generator) - 1
    before = Choice(logits, seen, sampling, uniforms)
    after = Choice(logits + error * noise, seen, sampling, uniforms)
    changed = before.ids != after.ids
    assert not (changed & ~before.unsure(torch.full((rows, 1), error))).any()
    return changed.any()


@settings(max_examples=200)
@given(
    samplings, st.integers(0, 10**6), st.sampled_from([1e-6, 1e-3, 0.1]), st.sampled_from([1, 17])
)
def test_a_choice_that_is_sure_is_the_same_for_scores_a_little_off(sampling, seed, error, size):
    assert_sure_choices_stay(sampling, seed, error, size, rows=200)


@pytest.mark.parametrize("error", [1e-3, 0.1])
@pytest.mark.parametrize(
    "only",
    [
        {},
        {"temperature": 0},
        {"temperature": 0.001},
        {"temperature": 0.5},
        {"top_k": 3},
        {"top_k": 3, "top_p": 0.9},
        {"top_p": 0.5},
        {"top_p": 0.9},
        {"min_p": 0.1},
        {"repetition_penalty": 0.2, "temperature": 0},
    ],
)
def test_each_way_to_choose_is_doubted_where_it_has_to_be(only, error):
    sampling = SampleConfig(**{"min_p": None} | only)
    assert assert_sure_choices_stay(sampling, 1, error, VOCABULARY, rows=30_000)


def test_doubt_is_rare():
    torch.manual_seed(0)
    logits = torch.randn(10_000, 65, dtype=torch.float64) * 3
    seen = torch.zeros_like(logits, dtype=torch.bool)
    uniforms = torch.rand(10_000, dtype=torch.float64)
    error = writing.ROUNDING * logits.abs().amax(-1, True)
    for sampling in (
        SampleConfig(),
        SampleConfig(top_k=10, top_p=0.9),
        SampleConfig(temperature=0),
    ):
        assert Choice(logits, seen, sampling, uniforms).unsure(error).double().mean() < 0.05


@pytest.mark.parametrize("temperature", [0, 0.7, 1.5])
def test_a_text_in_float32_is_that_of_float64(temperature):
    model = random_model(BYTES.vocab_size)
    sampling = SampleConfig(num_samples=8, max_new_tokens=100, temperature=temperature)
    texts = generate(model, BYTES, "abc", sampling, 1)
    assert texts == generate(model.double(), BYTES, "abc", sampling, 1, cached=False)


def test_the_texts_would_differ_without_a_second_look(monkeypatch):
    """What is looked at twice is worth it: with coarser scores, and no doubt, texts differ."""
    sampling = SampleConfig(num_samples=8, max_new_tokens=100)
    model = random_model(BYTES.vocab_size)
    texts = generate(model, BYTES, "abc", sampling, 1)
    coarse = Decoder.__call__
    monkeypatch.setattr(Decoder, "__call__", lambda *a: coarse(*a).bfloat16().float())
    assert texts != generate(model, BYTES, "abc", sampling, 1)
    monkeypatch.setattr(writing, "ROUNDING", 4e-3)
    assert texts == generate(model, BYTES, "abc", sampling, 1)
