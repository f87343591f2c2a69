"""Heads from outside: capture is exact and leaves no trace, scores say what their names say."""

import csv
import doctest
import importlib.util
import io
import itertools
import json
import math
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import REPOSITORY, run_script
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.cache import KVCache
from minigpt.checkpoint import Run, TrainingState
from minigpt.config import Config, DataConfig, ModelConfig
from minigpt.data import Split
from minigpt.errors import UserError
from minigpt.heads import (
    findings,
    measure,
    plots,
    scores,
    scoring,
    table,
    tally,
    targets,
    terminal,
    texts,
)
from minigpt.heads.arguments import parse, read_head, read_text
from minigpt.heads.capture import capture_attention, capturing, pad
from minigpt.heads.compare import compare, match_lines
from minigpt.heads.files import write_files
from minigpt.heads.inspection import inspect
from minigpt.heads.report import as_json, report
from minigpt.model import GPT
from minigpt.tokenizer import Tokenizer

STRANGE = ["<", "&", "</script>", "⏎", "\\xf0\\x9f", "日本", "😀", "$x$", "\x07", "a$"]
LONG = "·unbelievable"
LAYERS, HEADS, VOCABULARY = 3, 2, 17


def model_of(vocab_size=VOCABULARY, **changes):
    torch.manual_seed(0)
    shape = {"num_layers": LAYERS, "num_heads": HEADS, "embed_dim": 20, "context_length": 29}
    return GPT(ModelConfig(**shape | changes), vocab_size).eval()


def ids_of(batch, length, seed=0, vocab_size=VOCABULARY):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(vocab_size, (batch, length), generator=generator)


def hooks(model):
    return sum(len(module._forward_pre_hooks) for module in model.modules())


# ------------------------------------------------------------------------------ capture


@pytest.mark.parametrize("changes", [{}, {"positions": "learned", "qk_norm": False, "bias": True}])
@pytest.mark.parametrize(("batch", "length"), [(1, 1), (5, 11)])
def test_weights_are_those_that_the_layer_uses(changes, batch, length):
    model, ids = model_of(**changes).double(), ids_of(batch, length)
    seen = []
    for block in model.blocks:
        block.attention.register_forward_hook(lambda *seen_now: seen.append(seen_now))
    weights = capture_attention(model, ids)
    assert weights.shape == (LAYERS, batch, HEADS, length, length)
    assert weights.dtype == torch.float32
    for found, (layer, (inputs, _), outputs) in zip(weights, seen, strict=True):
        context = found.double() @ layer.split_heads(layer.W_value(inputs))
        made = layer.out_proj(layer.join_heads(context))
        torch.testing.assert_close(made, outputs, atol=1e-6, rtol=1e-5)


def test_rows_sum_to_one_the_future_is_zero_and_fused_is_explicit():
    model, ids = model_of(), ids_of(5, 29)
    fused = capture_attention(model, ids)
    for block in model.blocks:
        block.attention.fused = False
    torch.testing.assert_close(capture_attention(model, ids), fused)
    torch.testing.assert_close(fused.sum(-1), torch.ones(fused.shape[:-1]))
    assert (fused.triu(1) == 0).all()


def test_dropout_and_training_mode_change_nothing():
    model, ids = model_of(dropout=0.5), ids_of(3, 11)
    expected = capture_attention(model, ids)
    model.train()
    random_state = torch.get_rng_state()
    assert torch.equal(capture_attention(model, ids), expected)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(module.training for module in model.modules())
    with capturing(model) as captured:
        model(ids)
    torch.testing.assert_close(captured.weights.sum(-1), torch.ones(LAYERS, 3, HEADS, 11))


def test_low_precision_does_not_reach_the_weights():
    model, ids = model_of(qk_norm=False), ids_of(2, 11)
    with torch.autocast("cpu", torch.bfloat16):
        weights = capture_attention(model, ids)
    torch.testing.assert_close(weights.sum(-1), torch.ones(LAYERS, 2, HEADS, 11))


def test_hooks_are_gone_whatever_happens():
    model, ids = model_of(), ids_of(1, 5)
    with pytest.raises(ZeroDivisionError), capturing(model):
        assert hooks(model) == LAYERS
        raise ZeroDivisionError
    with pytest.raises(ValueError, match="do not fit"):
        capture_attention(model, ids_of(1, 30))
    with pytest.raises(ValueError, match="without a cache"), capturing(model):
        model(ids, KVCache(LAYERS, 5))
    with pytest.raises(ValueError, match="0 of 3 layers"), capturing(model) as captured:
        _ = captured.weights
    capture_attention(model, ids)
    assert hooks(model) == 0


def test_texts_of_different_length_look_as_they_do_alone():
    model, rows = model_of(), [[3, 1, 4, 1, 5], [9], [2, 6, 5]]
    together = capture_attention(model, pad(rows))
    for number, row in enumerate(rows):
        alone = capture_attention(model, row)[:, 0]
        shown = together[:, number, :, : len(row), : len(row)]
        torch.testing.assert_close(shown, alone)


def test_512_tokens():
    weights = capture_attention(model_of(context_length=512), ids_of(1, 512))
    torch.testing.assert_close(weights.sum(-1), torch.ones(LAYERS, 1, HEADS, 512))


# ------------------------------------------------------------------------------ scores


def looking_at(places):
    """Weights (1, B, 1, T, T) of a head that looks at the marked places, else at itself."""
    length = places.size(-1)
    places = torch.where(places.any(-1, keepdim=True), places, torch.eye(length, dtype=torch.bool))
    return (places / places.sum(-1, keepdim=True))[None, :, None]


TWICE = torch.tensor([[0, 5, 3, 8, 2, 5, 3, 8, 2]])


def test_a_previous_token_head():
    weights = looking_at(targets.back(TWICE, 1))
    assert scores.previous_token(weights, TWICE) == 1
    assert scores.offset_profile(weights, TWICE)[:9, 0, 0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert scores.offset_profile(weights, TWICE)[9:].isnan().all()
    assert scores.positional_share(weights, TWICE) == 1
    assert scores.distance(weights, TWICE) == 1
    assert scores.confidence(weights, TWICE) == 1
    assert scores.first_token(weights, TWICE) == 1 / 8
    assert scores.nearby(weights, TWICE) == 1
    for other in (scores.itself, scores.duplicate, scores.induction, scores.entropy):
        assert other(weights, TWICE) == 0


def test_a_duplicate_head():
    weights = looking_at(targets.earlier_same(TWICE))
    assert scores.duplicate(weights, TWICE) == 1
    assert scores.itself(weights, TWICE) == 0.5  # where nothing stood before
    assert scores.first_token(weights, TWICE) == 0
    assert scores.induction(weights, TWICE) == scores.previous_token(weights, TWICE) == 0


def test_an_induction_head():
    weights = looking_at(targets.after_earlier_same(TWICE))
    assert scores.induction(weights, TWICE) == scores.prefix_matching(weights, TWICE) == 1
    assert scores.duplicate(weights, TWICE) == scores.previous_token(weights, TWICE) == 0
    asked = scores.induction.by_query(weights, TWICE)[0, 0, 0]
    assert asked.isnan().tolist() == [True] * 5 + [False] * 3 + [True]  # nothing comes after


def test_induction_asks_only_where_the_text_repeats_itself():
    ids = torch.tensor([[1, 2, 1, 3, 1, 2, 2]])
    assert targets.after_earlier_same(ids)[0].nonzero().tolist() == [
        [2, 1], [4, 1], [4, 3], [5, 2], [6, 2]
    ]  # fmt: skip
    assert targets.where_it_repeats(ids)[0].nonzero().tolist() == [[4, 1]]


def test_a_resting_head_and_what_it_looks_at_otherwise():
    rest = looking_at(targets.first(TWICE))
    assert scores.first_token(rest, TWICE) == 1
    assert scores.first_token_on_repeats(rest, TWICE) == 1
    assert scores.first_token_elsewhere(rest, TWICE) == 1
    assert scoring.without_first(rest, TWICE)[0].isnan().all()
    mixed = 0.75 * rest + 0.25 * looking_at(targets.back(TWICE, 1))
    assert scores.previous_token(mixed, TWICE) == pytest.approx((1 + 7 * 0.25) / 8)
    assert scores.previous_token(*scoring.without_first(mixed, TWICE)) == 1


def test_an_even_head_has_the_scores_of_chance():
    weights, places = measure.even_weights(TWICE), range(1, 9)
    assert scores.entropy(weights, TWICE) == pytest.approx(1)
    assert scores.distance(weights, TWICE) == pytest.approx(np.mean([i / 2 for i in places]))
    chance = pytest.approx(np.mean([1 / (i + 1) for i in places]))
    for score in (scores.previous_token, scores.itself, scores.first_token, scores.confidence):
        assert score(weights, TWICE) == chance
    assert scores.duplicate(weights, TWICE) == pytest.approx(np.mean([1 / n for n in (6, 7, 8, 9)]))


SCORES = tally.SCORES | tally.SCORES_WITH_FIRST


@st.composite
def attention(draw):
    """Random weights (2, B, 3, T, T) and ids (B, T)."""
    batch, length = draw(st.integers(1, 3)), draw(st.integers(2, 9))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    logits = 3 * torch.randn(2, batch, 3, length, length, generator=generator)
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    weights = logits.masked_fill(future, -math.inf).softmax(-1)
    return weights, torch.randint(draw(st.integers(1, 5)), (batch, length), generator=generator)


@settings(max_examples=40, deadline=None)
@given(attention())
def test_scores_keep_their_promises(case):
    weights, ids = case
    before = weights.clone(), ids.clone()
    renamed = torch.tensor([7, 3, 9, 0, 4])[ids]
    padded = F.pad(weights, (0, 2, 0, 2)), F.pad(ids, (0, 2), value=targets.PADDING)
    for name, score in SCORES.items():
        found = score(weights, ids)
        assert found.shape[-2:] == (2, 3)
        same = {"rtol": 1e-4, "atol": 1e-5, "equal_nan": True}
        torch.testing.assert_close(score(weights.flip(2), ids), found.flip(-1), **same)
        torch.testing.assert_close(score(weights, renamed), found, **same)
        torch.testing.assert_close(score(*padded), found, **same)
        if name != "distance":
            known = found[~found.isnan()]
            assert ((known >= -1e-6) & (known <= 1 + 1e-5)).all()
    assert scores.offset_profile(weights, ids).nansum(0).max() <= 9
    assert torch.equal(weights, before[0])
    assert torch.equal(ids, before[1])


@settings(max_examples=40, deadline=None)
@given(attention())
def test_batches_add_up(case):
    weights, ids = case
    whole, parts = tally.Tally(), tally.Tally()
    whole.ask(SCORES, weights, ids)
    for row in range(len(ids)):
        parts.ask(SCORES, weights[:, row : row + 1], ids[row : row + 1])
    for name, mean in whole.means().items():
        if "offset" not in name or name.startswith("offset"):  # two offsets may be equally frequent
            same = {"rtol": 1e-5, "atol": 1e-6, "equal_nan": True}
            torch.testing.assert_close(parts.means()[name], mean, **same)


def test_the_examples_in_docstrings():
    assert doctest.testmod(targets, extraglobs={"torch": torch}).failed == 0


# ------------------------------------------------------------------------------ whole models

LETTERS, PLACES = 13, 27


def induction_model():
    """Exact weights: L0H0 copies the previous token, L1H0 looks for its own among the copies."""
    shape = {"num_layers": 2, "num_heads": 2, "embed_dim": 54, "context_length": PLACES}
    plain = {"positions": "learned", "qk_norm": False, "tie_embeddings": False}
    model = GPT(ModelConfig(**shape, **plain), LETTERS)
    token, copy = slice(0, LETTERS), slice(LETTERS, 2 * LETTERS)
    place = slice(2 * LETTERS, 2 * LETTERS + PLACES)
    sharp = 100.0
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                parameter.zero_()
        model.token_embedding.weight[:, token] = torch.eye(LETTERS)
        model.position_embedding.weight[:, place] = torch.eye(PLACES)
        first, second = (block.attention for block in model.blocks)
        first.W_query.weight[:PLACES, place] = sharp * torch.eye(PLACES).roll(-1, 0)
        first.W_query.weight[PLACES - 1, place] = 0
        first.W_key.weight[:PLACES, place] = torch.eye(PLACES)
        first.W_value.weight[:LETTERS, token] = torch.eye(LETTERS)
        first.out_proj.weight[copy, :LETTERS] = torch.eye(LETTERS)
        second.W_query.weight[:LETTERS, token] = sharp * torch.eye(LETTERS)
        second.W_key.weight[:LETTERS, copy] = torch.eye(LETTERS)
    return model.eval()


def test_a_hand_built_induction_circuit_is_found():
    rows = [[0, *half, *half] for half in ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [12, 5, 3, 8])]
    found = measure.measure(induction_model(), rows)
    assert found.scores["previous"][0, 0] > 0.999
    assert found.scores["positional"][0, 0] == 1
    assert found.scores["positional_offset"][0, 0] == 1
    for name in ("induction", "prefix_matching", "induction_random"):
        assert found.scores[name][1, 0] > 0.999, name
    assert found.scores["induction"][0].max() < 0.2
    previous, even, induction, idle = findings.describe(found)
    assert previous.words == "looks at the previous token, 1.00"
    assert induction.words == "looks at what followed this token before (induction), 1.00"
    assert even.kind == idle.kind == "everything"
    assert findings.most_interesting([previous, even, induction, idle]) is induction
    assert findings.best_first([idle, induction, even])[0] is induction


@pytest.mark.parametrize("seed", range(5))
def test_an_untrained_model_has_no_clear_head(seed):
    torch.manual_seed(seed)
    model = GPT(model_of().config, VOCABULARY)
    found = measure.measure(model, ids_of(8, 29, seed).tolist())
    assert not any(finding.clear for finding in findings.describe(found))


def test_a_near_sighted_head_is_called_so_where_nothing_narrower_is_true():
    ids = ids_of(1, 30)
    weights = looking_at(targets.near(ids, 3))
    assert scores.nearby(weights, ids) == 1
    assert scores.nearby(measure.even_weights(ids), ids) == pytest.approx(
        np.mean([4 / (i + 1) for i in range(4, 30)])
    )
    seen = tally.Tally()
    seen.ask(SCORES, weights, ids)
    even = dict.fromkeys(seen.means(), 0.1)
    (found,) = findings.describe(measure.Measurement(seen.means(), even, seen.asked(), 1, 30))
    assert found.words == "looks at itself and the 3 tokens before, 1.00"


def test_random_repeats_are_distinct_known_and_repeated():
    rows = measure.random_repeats([[4, 7, 7, 1], [2, 9, 4]], context_length=8, seed=1)
    assert rows != measure.random_repeats([[4, 7, 7, 1], [2, 9, 4]], context_length=8, seed=2)
    for first, *rest in rows:
        half = rest[: len(rest) // 2]
        assert rest == half + half
        assert first == 4
        assert len(set(half)) == len(half) == 3
        assert set(half) <= {7, 1, 2, 9}
    assert measure.random_repeats([[4]], context_length=8, seed=1) == [[4]]


def test_a_head_at_work_on_repeats_does_not_count_as_resting():
    values = dict.fromkeys([*findings.PATTERNS, "first_on_repeats", "entropy"], 0.0)
    values |= {"first": 0.8, "first_on_repeats": 0.3, "induction": 0.6}
    as_scores = {name: torch.full((1, 1), value) for name, value in values.items()}
    even = dict.fromkeys(values, 0.1)
    asked = dict.fromkeys(values, 100)
    (found,) = findings.describe(measure.Measurement(as_scores, even, asked, 1, 1))
    assert found.score == "induction"
    as_scores["induction"] = torch.full((1, 1), 0.1)
    (found,) = findings.describe(measure.Measurement(as_scores, even, asked, 1, 1))
    assert found.words == "no single pattern; most: first token, 0.80"
    as_scores["induction"] = torch.full((1, 1), 1.0)
    few = asked | {"induction": findings.FEWEST - 1}
    (found,) = findings.describe(measure.Measurement(as_scores, even, few, 1, 1))
    assert found.score == "first"


# ------------------------------------------------------------------------------ what is shown


def random_weights(layers, heads, length):
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(layers, heads, length, length, generator=generator).pow(4).tril() + 1e-6
    weights = weights.tril()
    return weights / weights.sum(-1, keepdim=True)


def strange_labels(length):
    return [(*STRANGE, LONG)[index % (len(STRANGE) + 1)] for index in range(length)]


@pytest.mark.parametrize("style", ["colour", "blocks", "digits"])
@pytest.mark.parametrize(
    ("length", "width", "shown"),
    [(1, 100, 1), (20, 100, 20), (60, 100, 40), (512, 100, 40), (30, 20, 5)],
)
def test_the_matrix_fits_the_terminal(style, length, width, shown):
    weights, labels = random_weights(1, 1, length)[0, 0], strange_labels(length)
    lines = terminal.shaded_matrix(weights, labels, style, width, most=40)
    end = lines.index("")
    assert [line.split()[0] for line in lines[end - shown : end]] == [str(n) for n in range(shown)]
    for line in lines[:end]:
        for colour in (*terminal.COLOURS, terminal.RESET):
            line = line.replace(colour, "")
        assert terminal.columns(line) <= width
    assert ("the picture has all" in lines[-1]) == (shown < length)


def test_a_certain_head_is_dark_in_every_style():
    weights = looking_at(targets.back(TWICE, 1))[0, 0, 0]
    labels = [str(id) for id in TWICE[0].tolist()]
    for style, dark in (("colour", terminal.COLOURS[-1]), ("blocks", "██"), ("digits", "9")):
        lines = terminal.shaded_matrix(weights, labels, style, 100, 40)
        assert all(line.count(dark) == 1 for line in lines[1:10])


def stream(encoding, watched):
    return SimpleNamespace(encoding=encoding, isatty=lambda: watched)


def test_the_style_follows_the_terminal():
    colours = {"TERM": "xterm-256color"}
    assert terminal.choose_style(stream("utf-8", True), colours) == "colour"
    assert terminal.choose_style(stream("utf-8", True), colours | {"NO_COLOR": "1"}) == "blocks"
    assert terminal.choose_style(stream("utf-8", False), colours) == "blocks"
    assert terminal.choose_style(stream("ascii", False), colours) == "digits"
    assert terminal.choose_style(stream("cp1252", True), {"TERM": "vt100"}) == "digits"
    assert terminal.printable("·cat – 日", stream("ascii", False)) == "_cat - \\u65e5"


@pytest.mark.parametrize(
    ("layers", "heads", "length"), [(2, 2, 1), (2, 2, 512), (4, 4, 20), (12, 12, 40)]
)
def test_pictures_have_no_overlapping_and_no_lost_text(layers, heads, length):
    weights, labels = random_weights(layers, heads, length), strange_labels(length)
    patterns, places = list(findings.PATTERNS), itertools.product(range(layers), range(heads))
    found = [
        findings.Finding(*place, patterns[n % len(patterns)], 0.5, 0.9 * (n % 3 > 0), 0.5)
        for n, place in enumerate(places)
    ]
    grid = plots.grid_picture(weights, labels, found, "run $1, step 3; a_b^c $")
    single = plots.head_picture(weights[0, 0], labels, "L0H0 $looks$ \x07日", "run")
    for sheet in (grid, single):
        assert sheet.png().startswith(b"\x89PNG")
        shown = [text for text in sheet.axes.texts if text.get_text().strip()]
        boxes = np.array([text.get_window_extent().extents for text in shown])
        assert_apart(boxes)
        width, height = sheet.figure.get_size_inches() * sheet.figure.dpi
        assert boxes[:, :2].min() >= 0
        assert boxes[:, 2].max() <= width
        assert boxes[:, 3].max() <= height


def assert_apart(boxes, slack=1.0):
    """No two boxes share more than a pixel, the empty rim of their letters."""
    left, bottom, right, top = boxes.T
    across = np.minimum(right[:, None], right) - np.maximum(left[:, None], left)
    along = np.minimum(top[:, None], top) - np.maximum(bottom[:, None], bottom)
    touching = (across > slack) & (along > slack)
    np.fill_diagonal(touching, False)
    assert not touching.any()


def test_thin_lines_survive_in_small_pictures():
    weights = looking_at(targets.back(torch.zeros(1, 500), 1))[0, 0, 0].numpy()
    assert (plots.coarse(weights, 4).diagonal() == 1).all()


# ------------------------------------------------------------------------------ runs


def run_of(tokenizer, tmp_path, **changes):
    model = model_of(tokenizer.vocab_size, **changes)
    data = DataConfig(source="text", path=str(tmp_path / "gone.txt"))
    config = Config(data=data, model=model.config)
    return Run(tmp_path / "runs" / "my run", config, tokenizer, model, TrainingState(step=7))


@pytest.fixture
def byte_run(tmp_path):
    return run_of(Tokenizer.byte(), tmp_path)


@pytest.mark.parametrize("text", ["x", "</script>\n<&$x$ \x07", "😀日"])
def test_any_text_is_looked_at_and_shown(byte_run, tmp_path, text):
    look = inspect(byte_run, text, (2, 1))
    assert look.weights.shape == (LAYERS, HEADS, len(text.encode()), len(text.encode()))
    files = write_files(look, tmp_path / "out")
    assert [path.name for path in files] == ["scores.csv", "attention.png", "attention_L2H1.png"]
    for encoding in ("utf-8", "ascii"):
        shown = report(look, files, stream(encoding, False))
        shown.encode(encoding)
        assert shown.count("\nL") >= LAYERS * HEADS
        assert "--head L" in shown
    assert json.loads(as_json(look, files))["shown"] == "L2H1"


def test_one_token_leaves_open_what_needs_more(byte_run):
    look = inspect(byte_run, "x")
    lines = table.table(look.measurement, look.findings)
    assert all(line.count("–") == 8 for line in lines[1:])
    assert "too short" in look.chosen.words
    assert "6 heads, seen on your text (1 token)" in report(look, [], stream("utf-8", False))
    assert set(as_rows(look)[0]) == set(as_rows(inspect(byte_run, "xy xy xy"))[0])
    assert {row["previous"] for row in as_rows(look)} == {"", "0"}


def as_rows(look):
    return list(csv.DictReader(io.StringIO(table.to_csv(look.measurement, look.findings))))


def test_a_long_text_is_cut_and_says_so(byte_run):
    look = inspect(byte_run, "long " * 20)
    assert look.texts.ids == [list(b"long " * 20)[:29]]
    assert "100 tokens" in look.texts.note
    assert "29 at once" in look.texts.note
    assert "note: the text has" in report(look, [], stream("utf-8", False))


def test_without_its_corpus_the_model_writes_texts_itself(byte_run):
    look = inspect(byte_run)
    assert "gone.txt: No such file" in look.texts.note
    assert "wrote itself" in look.texts.origin
    assert {len(ids) for ids in look.texts.ids} == {29}
    assert inspect(byte_run).texts == look.texts


def test_mistakes_are_one_line(byte_run, tmp_path):
    with pytest.raises(UserError, match="--text: empty"):
        inspect(byte_run, "")
    with pytest.raises(UserError, match="no L3H0; the run has L0H0 to L2H1"):
        inspect(byte_run, "x", (3, 0))
    with pytest.raises(UserError, match="characters Ü are not"):
        inspect(run_of(Tokenizer.char("abc"), tmp_path), "Üa")
    for name in ("3", "L1", "H1L2", "L-1H0", "L٣H1"):
        with pytest.raises(UserError, match="write layer and head as in L2H1"):
            read_head(name)
    with pytest.raises(UserError, match="--text: .*nowhere.txt: No such file"):
        read_text("FILE:nowhere.txt")
    with pytest.raises(UserError, match="--text: ~nobody-here/a: No such file"):
        read_text("FILE:~nobody-here/a")
    with pytest.raises(UserError, match="unrecognized arguments: --heads"):
        parse(["--heads", "L0H0"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["RUN", "--compare", "a", "b"], "--compare: does not go with RUN"),
        (["--compare", "a", "b", "--text="], "--compare: does not go with --text"),
        (["--prune=broad", "--json"], "--prune: does not go with --json"),
        (["--prune=", "--relation=agreement"], "--prune: does not go with --relation"),
        (["--relation=agreement", "--out=a"], "--relation: does not go with --out"),
        (["--out="], "--out: empty"),
        (["--csv=a/config.yaml"], "--csv: 'a/config.yaml' needs a name .* ends with .csv"),
        (["--csv=relations.csv"], "--csv: 'relations.csv' needs a name of its own"),
        (["a@3", "--checkpoint=last"], "--checkpoint: a@3 names one already"),
    ],
)
def test_options_that_would_be_left_unread_or_do_harm_are_refused(options, words):
    with pytest.raises(UserError, match=words):
        parse(options)


def test_what_a_killed_inspection_left_half_is_removed_by_the_next(byte_run, tmp_path):
    folders = tmp_path / "out", tmp_path / "tables"
    for folder in folders:
        folder.mkdir()
        (folder / ".attention_L9H9.png.77.partial").write_text("half")
    files = write_files(inspect(byte_run, "xyz"), folders[0], folders[1] / "a.csv")
    assert {path for folder in folders for path in folder.iterdir()} == set(files)


def test_a_comparison_tells_what_it_leaves_out(tmp_path):
    one = inspect(run_of(Tokenizer.byte(), tmp_path, pruned=["L1H0"]), "xyzxyzxyz" * 3)
    other = inspect(run_of(Tokenizer.byte(), tmp_path), "xyzxyzxyz" * 3)
    lines = match_lines(compare(other, one), other, one)
    assert len(lines) == 1 + LAYERS * HEADS - 1 + 1
    assert lines[-1].startswith("without a partner in ")
    short = inspect(run_of(Tokenizer.byte(), tmp_path), "x")
    assert match_lines(compare(short, short), short, short)[1].split()[2] == "–"


def test_a_head_that_is_gone_is_not_shown_as_another(tmp_path):
    run = run_of(Tokenizer.byte(), tmp_path, pruned=["L1H0"])
    assert inspect(run, "xyz", (1, 1)).chosen.name == "L1H1"
    with pytest.raises(UserError, match="no L1H0; of layer 1 there are L1H1; choose"):
        inspect(run, "xyz", (1, 0))


@pytest.mark.parametrize("text", ["   ", "\n\n", "\x07\x1b[31m", "-", "FILE:a"])
def test_what_can_not_be_typed_is_not_advised(byte_run, text):
    shown = report(inspect(byte_run, text), [], stream("utf-8", False), "runs/a@last")
    assert "--text" not in shown
    assert "  python scripts/inspect_heads.py runs/a@last --head L" in shown
    assert not set(shown) & set("\x07\x1b")


def test_stories_are_told_anew_and_given_texts_begin_as_stories_do(tmp_path):
    from minigpt.stories import corpus, spelling

    tokenizer = Tokenizer.word(spelling.vocabulary())
    run = run_of(tokenizer, tmp_path, context_length=64)
    run.config = Config(model=run.config.model)
    own = texts.own_texts(run)
    assert own.origin == "64 validation stories"
    assert max(map(len, own.ids)) == 64
    assert tokenizer.decode(own.ids[1]).strip().startswith(corpus.story_text("val", 1337, 1)[:100])
    given = texts.given_text(run, "Lily").ids[0]
    assert tokenizer.decode(given) == "\nLily"
    run.tokenizer = Tokenizer.byte()
    assert "words have changed" in texts.own_texts(run).note


def test_the_tokens_shown_are_the_tokens_fed(tmp_path, byte_run):
    """None is hidden, also where a line break is put before a story."""
    from minigpt.stories import spelling

    stories = run_of(Tokenizer.word(spelling.vocabulary()), tmp_path)
    stories.config = Config(model=stories.config.model)
    for run, text, expected in (
        (stories, "One day", ["⏎", "One", "·day"]),
        (byte_run, "\nab", ["⏎", "a", "b"]),
    ):
        fed = []
        run.model.register_forward_pre_hook(lambda _, inputs, fed=fed: fed.append(inputs[0]))
        look = inspect(run, text, fast=True)
        assert look.labels == expected
        assert look.weights.shape[2:] == (len(expected), len(expected))
        assert (
            fed[-1].flatten().tolist()
            == look.texts.shown
            == run.tokenizer.encode("\n" + text.removeprefix("\n"))
        )
        shown = report(look, [], stream("utf-8", False)).splitlines()
        assert all(f"  {n} {label}" in "\n".join(shown) for n, label in enumerate(expected))


@pytest.mark.parametrize(("size", "expected"), [(0, [0]), (5, [5]), (10, [10]), (25, [10, 10])])
def test_passages_cover_a_split(size, expected):
    found = texts.passages(Split(np.arange(size), size), 10)
    assert [len(ids) for ids in found] == expected


def test_the_text_shown_is_short_and_repeats_itself():
    rows = [[1, 2, 1, 2, 1, 2] * 20, [1, 2, 3], [4, 5, 4, 5], [6, 7, 8, 9]]
    assert texts.Texts(rows, "").shown == [4, 5, 4, 5]
    assert texts.Texts(rows[:1], "").shown == rows[0]


def test_written_stories_end_where_the_next_begins():
    assert texts.first_story([0, 5, 6, 0, 7]) == [0, 5, 6]
    assert texts.first_story([0, 5, 6]) == [0, 5, 6]


def test_passages_spread_over_a_long_split():
    found = texts.passages(Split(np.arange(1000), 1000), 10, number=4)
    assert [ids[0] for ids in found] == [0, 330, 660, 990]


# ------------------------------------------------------------------------------ the script


@pytest.fixture(scope="module")
def main():
    path = REPOSITORY / "scripts" / "inspect_heads.py"
    spec = importlib.util.spec_from_file_location("inspect_heads", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def test_the_script_shows_writes_and_says_what_is_next(tiny_run, tmp_path):
    shutil.copytree(tiny_run, tmp_path / "runs" / "a run")
    done = run_script("inspect_heads.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 heads, seen on" in done.stdout
    heads = tmp_path / "runs" / "a run" / "heads"
    made = {path.name for path in heads.iterdir()}
    assert {"scores.csv", "attention.png"} < made
    assert len(made) == 3
    rows = list(csv.DictReader(io.StringIO((heads / "scores.csv").read_text(encoding="utf-8"))))
    assert [row["head"] for row in rows] == ["L0H0", "L0H1", "L1H0", "L1H1", "even", "asked"]
    assert "scripts/inspect_heads.py 'runs/a run' --head L" in done.stdout.splitlines()[-2]
    assert "--text=" in done.stdout.splitlines()[-1]


def test_mistakes_in_a_shell_are_one_line(tiny_run, tmp_path):
    done = run_script("inspect_heads.py", str(tiny_run), "--head=L9H9", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: --head: no L9H9; the run has L0H0 to L1H1; choose one of them\n"


def test_a_place_that_cannot_be_written_is_known_before_the_work(main, tiny_run, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    shutil.copytree(tiny_run, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))
    (tmp_path / "run" / "checkpoints" / "step-00000001").mkdir(parents=True)  # of which none loads
    for option in (f"--out={tmp_path}/file", f"--csv={tmp_path}/file/a.csv"):
        with pytest.raises(UserError, match="file: can't be written"):
            main([str(tmp_path / "run"), option])


def test_json_and_other_places(main, tiny_run, tmp_path, capsys):
    options = ["--json", f"--out={tmp_path / 'o'}", f"--csv={tmp_path / 'a.csv'}", "--head=l1h0"]
    main([str(tiny_run), "--text", "The red dog", "--checkpoint=last", *options])
    found = json.loads(capsys.readouterr().out)
    assert found["shown"] == "L1H0"
    assert len(found["heads"]) == 4
    assert found["seen_on"] == "your text"
    assert (tmp_path / "a.csv").exists()
    assert {path.name for path in (tmp_path / "o").iterdir()} == {
        "attention.png",
        "attention_L1H0.png",
    }
    assert not (tiny_run / "heads").exists()
