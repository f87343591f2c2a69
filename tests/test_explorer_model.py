"""The page's own arithmetic, in a real browser, against PyTorch and tiktoken."""

import base64

import pytest
import torch
from browser import Watched, opened_browser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minigpt.config import ModelConfig, SampleConfig
from minigpt.explorer.bundle import PAGE, one_script
from minigpt.explorer.contents import model_of, tokenizer_of
from minigpt.explorer.numbers import packed, packed_weights
from minigpt.generation import window_start
from minigpt.heads.capture import capture_attention
from minigpt.heads.changing import head_outputs, replacing
from minigpt.model import GPT
from minigpt.sampling import at_temperature, keep
from minigpt.tokenizer import Tokenizer
from minigpt.vocabulary import frequent_words, learned_pairs
from minigpt.weights import weights_of

VOCABULARY, LENGTH = 23, 11
SHAPE = {"embed_dim": 20, "num_heads": 2, "num_layers": 2, "context_length": LENGTH}
ARCHITECTURES = {
    "default": {},
    "learned positions, biases": {"positions": "learned", "bias": True},
    "GPT-2": {
        "positions": "learned",
        "bias": True,
        "activation": "gelu_tanh",
        "qk_norm": False,
        "feed_forward_multiple": 4,
    },
    "gelu, untied": {"activation": "gelu", "tie_embeddings": False, "qk_norm": False},
    "few heads first": {"first_layer_heads": 1},
    "pruned": {"num_heads": 5, "embed_dim": 30, "pruned": ["L0H0", "L1H2", "L1H4"]},
    "one head of one layer": {"num_layers": 1, "num_heads": 1, "embed_dim": 6},
}
READ = """([config, numbers, means, ids, off]) => {
  const model = new $model.Model(config, $bytes.unpackedWeights(numbers), $bytes.floats(means));
  const reading = new $model.Reading(model, off);
  for (const part of ids) reading.append(part);
  const plain = (rows) => rows.map((row) => Array.from(row));
  const weights = reading.layers.map((layer) => layer.weights.map(plain));
  return { logits: plain(reading.logits), weights };
}"""


@pytest.fixture(scope="module")
def page():
    """An empty page that knows the explorer's modules."""
    with opened_browser() as browser:
        page = Watched(browser).page
        for name in ("writing.js", "tokenizer.js", "bytes.js"):
            page.add_script_tag(content=f"{one_script(PAGE / name).replace('const $', 'var $')}")
        yield page


def gpt(seed=0, **changes):
    torch.manual_seed(seed)
    model = GPT(ModelConfig(**(SHAPE | changes)), VOCABULARY).eval()
    with torch.no_grad():  # far from where training begins, so that no part is without effect
        for parameter in model.parameters():
            parameter.normal_(std=0.4)
    return model


class Shape:
    """What `model_of` reads of a run."""

    def __init__(self, model):
        self.config = type("Config", (), {"model": model.config})


def read(page, model, ids, *, full=True, means=None, off=None, parts=None):
    config = model.config
    if means is None:
        means = torch.zeros(config.num_layers, config.num_heads, config.head_dim)
    weights = packed_weights(weights_of(model), full)
    shape = model_of(Shape(model))
    return page.evaluate(READ, [shape, weights, packed(means), parts or [ids], off or {}])


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_it_computes_what_pytorch_computes(page, name):
    model = gpt(**ARCHITECTURES[name])
    ids = [3, 1, 4, 1, 5, 9, 2, 6, 5]
    with torch.no_grad():
        expected = model(torch.tensor([ids]))[0]
    found = read(page, model, ids)
    assert torch.allclose(torch.tensor(found["logits"]), expected, atol=1e-4)
    looks = capture_attention(model, ids)[:, 0]
    for layer, heads in enumerate(found["weights"]):
        for place, rows in zip(model.config.heads_in(layer), heads, strict=True):
            for query, row in enumerate(rows):
                assert torch.allclose(
                    torch.tensor(row).float(), looks[layer, place, query, : query + 1], atol=1e-5
                )


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_sixteen_bits_a_weight_are_enough(page, name):
    model = gpt(**ARCHITECTURES[name])
    ids = [7, 7, 0, 22, 13]
    exact, short = (read(page, model, ids, full=full)["logits"] for full in (True, False))
    assert torch.allclose(torch.tensor(exact), torch.tensor(short), atol=1e-2)


@pytest.mark.parametrize("name", ["default", "GPT-2"])
def test_word_by_word_is_the_same_as_at_once(page, name):
    model = gpt(**ARCHITECTURES[name])
    ids = [3, 1, 4, 1, 5, 9, 2]
    at_once = read(page, model, ids)["logits"]
    in_turn = read(page, model, ids, parts=[[3, 1], [4], [1, 5, 9], [2]])["logits"]
    assert torch.allclose(torch.tensor(at_once), torch.tensor(in_turn), atol=1e-5)


@pytest.mark.parametrize("by", ["mean", "zero"])
def test_a_head_that_is_off_puts_out_what_stands_for_it(page, by):
    model = gpt(**ARCHITECTURES["pruned"])
    ids = [3, 1, 4, 1, 5, 9, 2, 6]
    means = head_outputs(model, torch.tensor([ids])).mean((1, 2))
    instead = means if by == "mean" else torch.zeros_like(means)
    gone = {(0, 1): instead[0, 1], (1, 3): instead[1, 3]}
    with torch.no_grad(), replacing(model, gone):
        expected = model(torch.tensor([ids]))[0]
    found = read(page, model, ids, means=means, off={"L0H1": by, "L1H3": by})
    assert torch.allclose(torch.tensor(found["logits"]), expected, atol=1e-4)


def test_taking_words_back_leaves_no_trace(page):
    model = gpt()
    shape, weights = model_of(Shape(model)), packed_weights(weights_of(model), True)
    script = """([config, weights, first, second]) => {
      const model = new $model.Model(config, $bytes.unpackedWeights(weights), new Float32Array(0));
      const typed = new $model.Reading(model).become(first).become(second);
      const fresh = new $model.Reading(model).become(second);
      return [typed, fresh].map(({ logits }) => logits.map((row) => Array.from(row)));
    }"""
    for second in ([1, 2, 3], [1, 2, 3, 4, 5, 6], [1, 9, 3, 4], [1]):
        typed, fresh = page.evaluate(script, [shape, weights, [1, 2, 3, 4, 5], second])
        assert torch.allclose(torch.tensor(typed), torch.tensor(fresh), atol=1e-5)


# ------------------------------------------------------------------------------ text

WORDS = "The dog's ball, the dogs' balls — 12 of 345 naïve cafés. 日本語 Ünïcödé ½ 🙂"
TOKENIZERS = {
    "char": Tokenizer.char(WORDS + "\n\tabcdefghijklmnopqrstuvwxyz"),
    "byte": Tokenizer.byte(),
    "word": Tokenizer.word(frequent_words([WORDS], 40)),
    "bpe": learned_pairs([WORDS * 3], 300),
}
ENCODE = "([shape, texts]) => texts.map((text) => new $tokenizer.Tokenizer(shape).encode(text))"
TEXTS = st.text(st.sampled_from(sorted(set(WORDS)) + list("\n\r\t\u00a0\u0085\ufeff\u2028'’1")))


class Reader:
    """What `tokenizer_of` reads of a run."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer


@pytest.mark.parametrize("kind", TOKENIZERS)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(TEXTS, min_size=20, max_size=40))
def test_it_cuts_text_as_tiktoken_does(page, kind, texts):
    tokenizer = TOKENIZERS[kind]
    if kind == "char":
        texts = ["".join(c for c in text if c.encode() in tokenizer.ids) for text in texts]
    found = page.evaluate(ENCODE, [tokenizer_of(Reader(tokenizer)), texts])
    assert [one["ids"] for one in found] == [tokenizer.encode(text) for text in texts]


def test_gpt2s_tokens_are_cut_as_tiktoken_does(page, request):
    from conftest import SHARED_DATA

    if not (SHARED_DATA / "tiktoken_cache").exists():
        pytest.skip("GPT-2's token files are not beside the project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(SHARED_DATA / "tiktoken_cache"))
        from minigpt.vocabulary import gpt2

        tokenizer = gpt2()
    texts = [WORDS, "  two  blanks\n\n\n lines \n", "it's we'll I'VE", "x" * 50, "\t\t a"]
    found = page.evaluate(ENCODE, [tokenizer_of(Reader(tokenizer)), texts])
    assert [one["ids"] for one in found] == [tokenizer.encode(text) for text in texts]


def test_characters_that_no_token_knows_are_told(page):
    shape = tokenizer_of(Reader(Tokenizer.char("abc\n")))
    [found] = page.evaluate(ENCODE, [shape, ["abxcx🙂"]])
    assert found == {"ids": [1, 2, 3], "unknown": ["x", "🙂"]}


# ------------------------------------------------------------------------------ draws


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 1.0},
        {"temperature": 0.5, "top_k": 3},
        {"temperature": 2.0, "top_p": 0.6},
        {"temperature": 1.0, "min_p": 0.2},
        {"temperature": 0.7, "top_k": 9, "top_p": 0.8, "min_p": 0.05},
    ],
    ids=str,
)
def test_what_may_be_drawn_is_what_python_would_draw_from(page, settings):
    logits = torch.randn(4, 30, generator=torch.Generator().manual_seed(1)).double() * 2
    logits[3, :5] = logits[3, 5]  # equals
    sampling = SampleConfig(**({"min_p": None} | settings))
    expected = keep(at_temperature(logits, sampling.temperature), sampling).softmax(-1)
    given = {"temperature": sampling.temperature, "topK": sampling.top_k, "topP": sampling.top_p}
    script = "([row, settings]) => $sampling.candidates(row, settings)"
    for row, shares in zip(logits, expected, strict=True):
        found = page.evaluate(script, [row.tolist(), given | {"minP": sampling.min_p}])
        mine = torch.zeros_like(shares)
        mine[[one["id"] for one in found]] = torch.tensor(
            [one["probability"] for one in found]
        ).double()
        assert torch.allclose(mine, shares, atol=1e-6)


def test_temperature_zero_takes_the_best_and_of_equals_the_first(page):
    settings = {"temperature": 0, "topK": None, "topP": None, "minP": None}
    found = page.evaluate("(s) => $sampling.candidates([1, 5, 5, 2], s)", settings)
    assert found == [{"id": 1, "probability": 1}]


def test_a_full_context_drops_its_older_half_at_the_same_tokens(page):
    lengths = [[length, context] for context in (1, 2, 5, 8) for length in range(1, 30)]
    script = "(pairs) => pairs.map(([length, context]) => $sampling.windowStart(length, context))"
    assert page.evaluate(script, lengths) == [window_start(*pair) for pair in lengths]


def test_random_numbers_are_even_and_a_function_of_the_seed(page):
    script = "(seed) => Array.from({ length: 4000 }, (_, step) => $sampling.uniformAt(seed, step))"
    first, again, other = (page.evaluate(script, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert min(first) >= 0 and max(first) < 1
    counts = torch.histc(torch.tensor(first), 10, 0, 1)
    assert counts.min() > 320 and counts.max() < 480
    assert len(set(first)) > 3990


def test_numbers_come_through(page):
    values = torch.tensor([0.0, -1.5, 3.25e-5, 1e20])
    assert page.evaluate(
        "(text) => Array.from($bytes.floats(text))", packed(values)
    ) == pytest.approx(values.tolist())
    assert base64.b64decode(packed(values))[4:8] == b"\x00\x00\xc0\xbf"
