"""Writing: what may be drawn, one text however it is computed, whole characters, the script."""

import importlib.util
import math
import random
import re
import shutil
import signal
import subprocess
import sys
from itertools import accumulate

import pytest
import torch
from conftest import REPOSITORY, run_script
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minigpt import checkpoint, storage
from minigpt import generation as writing
from minigpt.command_line import dump_yaml
from minigpt.config import Config, ModelConfig, SampleConfig
from minigpt.errors import CONFIG, DATA, NON_FINITE, UserError
from minigpt.generation import Window, Writer, generate, stream, window_start
from minigpt.model import GPT
from minigpt.sampling import Choice, at_temperature, draw, keep, penalise
from minigpt.tokenizer import Tokenizer

BYTES = Tokenizer.byte()
CONTEXT = 16


def sampling(**settings) -> SampleConfig:
    return SampleConfig(**{"num_samples": 1, "max_new_tokens": 40} | settings)


def random_model(positions="rotary", dtype=torch.float64, **settings) -> GPT:
    config = ModelConfig(
        num_layers=2, num_heads=2, embed_dim=12, context_length=CONTEXT, positions=positions
    )
    return with_big_weights(GPT(config.model_copy(update=settings), BYTES.vocab_size)).to(dtype)


def with_big_weights(model):
    """What comes next depends on all that came before."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter, std=0.7)
    return model


MODEL = random_model()


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other are slow where tests run side by side."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# ------------------------------------------------------------------------------ what may be drawn

scores = st.lists(st.floats(-60, 60), min_size=1, max_size=12)
some_settings = st.builds(
    sampling,
    temperature=st.sampled_from([1e-8, 0.3, 1.0, 7.0, 1e9]) | st.floats(0.01, 5),
    top_k=st.none() | st.integers(0, 14) | st.just(10**9),
    top_p=st.sampled_from([None, 0, 1, 1e-9]) | st.floats(0, 1),
    min_p=st.sampled_from([None, 0, 1, 1e-9]) | st.floats(0, 1),
    repetition_penalty=st.sampled_from([1.0, 1e-300, 1e300]) | st.floats(0.5, 3),
)


def softmax(row):
    weights = [math.exp(score - max(row)) for score in row]
    return [weight / sum(weights) for weight in weights]


def adjust(logits, sampling):
    return keep(at_temperature(logits, sampling.temperature), sampling)


def simple_adjust(row, sampling):
    """The definition of each setting, one token after the other."""
    row = [(score - max(row)) / sampling.temperature for score in row]
    best_first = sorted(range(len(row)), key=lambda token: -row[token])
    if sampling.top_k:
        last = row[best_first[: sampling.top_k][-1]]
        row = [score if score >= last else -math.inf for score in row]
    if sampling.top_p is not None and sampling.top_p < 1:
        best_first = sorted(range(len(row)), key=lambda token: -row[token])
        probabilities = softmax(row)
        before = accumulate([0.0] + [probabilities[token] for token in best_first])
        for rank, (token, so_far) in enumerate(zip(best_first, before, strict=False)):
            if so_far >= sampling.top_p and rank > 0:
                row[token] = -math.inf
    if sampling.min_p:
        row = [s if s >= max(row) + math.log(sampling.min_p) else -math.inf for s in row]
    return row


@settings(deadline=None, max_examples=200)
@given(scores, some_settings)
def test_adjusted_scores_are_those_of_the_definition(row, sampling):
    expected = softmax(simple_adjust(row, sampling))
    got = adjust(torch.tensor([row], dtype=torch.float64), sampling).softmax(-1)[0].tolist()
    borderline = sampling.top_p is not None  # a sum in another order may tip the last token in
    if not borderline or [g > 0 for g in got] == [e > 0 for e in expected]:
        assert got == pytest.approx(expected, abs=1e-9)
    else:
        assert abs(sum(g > 0 for g in got) - sum(e > 0 for e in expected)) <= 1


@settings(deadline=None, max_examples=200)
@given(st.lists(st.floats(-1e38, 1e38), min_size=1, max_size=9), some_settings, st.randoms())
def test_no_setting_and_no_score_breaks_a_draw(row, sampling, source):
    logits = torch.tensor([row, row[::-1]], dtype=torch.float64)
    seen = torch.tensor([[source.random() < 0.5 for _ in row]] * 2)
    for temperature in (sampling.temperature, 0.0):
        sampling = sampling.model_copy(update={"temperature": temperature})
        uniforms = torch.tensor([source.random(), 1 - 2**-53], dtype=torch.float64)
        chosen = Choice(logits, seen, sampling, uniforms).ids
        assert chosen.shape == (2,)
        assert all(0 <= token < len(row) for token in chosen.tolist())


@settings(deadline=None)
@given(st.lists(st.integers(-400, 400), min_size=1, max_size=12, unique=True), st.floats(0, 0.999))
def test_the_coldest_settings_take_the_best(row, uniform):
    logits = torch.tensor([row], dtype=torch.float64) / 10
    seen, uniforms = torch.zeros_like(logits, dtype=torch.bool), torch.tensor([uniform])
    for cold in ({"temperature": 0}, {"temperature": 1e-8}, {"top_k": 1}, {"top_p": 0},
                 {"top_p": 1e-9}, {"min_p": 1}):  # fmt: skip
        assert Choice(logits, seen, sampling(**cold), uniforms.double()).ids.tolist() == [
            row.index(max(row))
        ]


def test_settings_that_are_off_change_nothing():
    logits = torch.tensor([[0.0, -1.0, -2.2]], dtype=torch.float64)
    for off in ({}, {"top_k": 0}, {"top_k": 10**9}, {"top_p": 1}, {"min_p": 0}):
        assert torch.equal(adjust(logits, sampling(**({"min_p": None} | off))), logits)


def test_repetition_penalty_by_hand():
    logits = torch.tensor([[4.0, -4.0, 3.0, 0.0]])
    seen = torch.tensor([[True, True, False, True]])
    assert penalise(logits, seen, 2.0).tolist() == [[2.0, -8.0, 3.0, 0.0]]


def test_the_smallest_set_that_reaches_top_p_is_kept():
    logits = torch.tensor([[0.25, 0.5, 0.125, 0.125]], dtype=torch.float64).log()
    kept = {p: adjust(logits, sampling(top_p=p)).isfinite()[0].tolist() for p in (0.5, 0.51, 0.8)}
    assert kept[0.5] == [False, True, False, False]
    assert kept[0.51] == [True, True, False, False]
    assert kept[0.8] == [True, True, True, False]


def test_draws_have_the_probabilities_and_never_a_dropped_token():
    probabilities = torch.tensor([[0.0, 0.25, 0.0, 0.5, 0.25, 0.0]], dtype=torch.float64)
    uniforms = torch.arange(1000, dtype=torch.float64) / 1000
    counts = draw(probabilities.cumsum(-1).repeat(1000, 1), uniforms).bincount(minlength=6)
    assert counts.tolist() == [0, 250, 0, 500, 250, 0]
    last = torch.tensor([1 - 2**-53], dtype=torch.float64)
    assert draw(probabilities.cumsum(-1), last).item() == 4


# ------------------------------------------------------------------------------ always one text


@given(st.integers(1, 5000), st.integers(1, 600))
@example(1, 1)
def test_the_window_fits_and_jumps_by_half_a_context(length, context_length):
    start = window_start(length, context_length)
    half = (context_length + 1) // 2
    assert start % half == 0
    assert length - start <= context_length
    assert start == 0 or length - start > context_length - half


@pytest.mark.parametrize(
    ("positions", "prompt"),
    [("rotary", ""), ("rotary", "three contexts: " * 3), ("learned", "one two")],
)
def test_ten_contexts_are_the_same_with_and_without_cache(positions, prompt):
    model = random_model(positions)
    for seed in (1, 2):
        settings = sampling(num_samples=2, max_new_tokens=10 * CONTEXT, repetition_penalty=1.1)
        cached = generate(model, BYTES, prompt, settings, seed)
        assert cached == generate(model, BYTES, prompt, settings, seed, cached=False)


def test_cached_logits_are_the_models_own_past_the_context():
    ids = torch.randint(256, (1, 5 * CONTEXT))
    window = Window(MODEL, ids[:, :3], ids.size(1))
    with torch.inference_mode():
        for end in range(3, ids.size(1)):
            start = window_start(end, CONTEXT)
            expected = MODEL(ids[:, start:end])[:, -1]
            assert torch.allclose(window.logits(), expected, rtol=0, atol=1e-10)
            window.append(ids[:, end : end + 1])


@pytest.mark.parametrize("context_length", [1, 2, 3])
def test_the_smallest_contexts_write_too(context_length):
    model = random_model("learned", context_length=context_length)
    settings = sampling(temperature=0.5)
    text = generate(model, BYTES, "abc", settings, 1)
    assert text == generate(model, BYTES, "abc", settings, 1, cached=False)


def test_a_sample_is_the_same_alone_and_among_others(monkeypatch):
    five = generate(MODEL, BYTES, "a", sampling(num_samples=5), 7)
    assert len(set(five)) == 5
    assert five[:2] == generate(MODEL, BYTES, "a", sampling(num_samples=2), 7)
    assert five == ["".join(stream(MODEL, BYTES, "a", sampling(), 7, i)) for i in range(5)]
    monkeypatch.setattr(writing, "SAMPLES_AT_ONCE", 2)
    assert five == generate(MODEL, BYTES, "a", sampling(num_samples=5), 7)
    assert five != generate(MODEL, BYTES, "a", sampling(num_samples=5), 8)


def test_a_high_repetition_penalty_repeats_nothing_of_prompt_or_text():
    settings = sampling(temperature=0, repetition_penalty=1e9)
    prompt = torch.arange(40)[None]
    ids = [i for (i,) in writing.next_ids(MODEL, prompt, settings, 1, [0], True)]
    assert len({*range(40), *ids}) == 80


def test_longer_texts_begin_like_shorter_ones():
    short, long = (
        generate(MODEL, BYTES, "a", sampling(max_new_tokens=n, repetition_penalty=1.3), 3)[0]
        for n in (10, 60)
    )
    assert long.startswith(short.rstrip("\ufffd"))


def test_writing_leaves_model_and_global_randomness_alone():
    model = random_model(dropout=0.5).train()
    model.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    state = torch.get_rng_state()
    texts = [generate(model, BYTES, "a", sampling(), 1) for _ in range(2)]
    assert texts[0] == texts[1]
    next(stream(model, BYTES, "a", sampling(), 1)).encode()
    assert not torch.is_inference_mode_enabled()
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)


def test_a_model_without_numbers_is_one_clear_line():
    model = random_model()
    torch.nn.init.constant_(model.final_norm.weight, math.nan)
    with pytest.raises(UserError, match="not finite") as caught:
        generate(model.train(), BYTES, "a", sampling(), 1)
    assert caught.value.exit_code == NON_FINITE
    assert model.training


def test_an_interruption_keeps_the_text_so_far():
    asked = iter([False, False, True])
    whole = generate(MODEL, BYTES, "a", sampling(), 1)[0]
    part = generate(MODEL, BYTES, "a", sampling(), 1, interrupted=lambda: next(asked))[0]
    assert 0 < len(part) <= 3
    assert whole.startswith(part.rstrip("\ufffd"))


# ------------------------------------------------------------------------------ what is shown


def written(monkeypatch, text: bytes, **settings):
    """The pieces that a model shows which writes exactly these bytes."""
    ids = iter(text)

    class Dictated(Choice):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.ids = torch.tensor([next(ids)])

        def unsure(self, error):
            return torch.zeros(1, dtype=torch.bool)

    monkeypatch.setattr(writing, "Choice", Dictated)
    return list(stream(MODEL, BYTES, "", sampling(max_new_tokens=len(text), **settings), 1))


def test_characters_are_streamed_whole(monkeypatch):
    text = "naïve 🙂 你好 👩‍👩‍👧 end"
    assert written(monkeypatch, text.encode()) == list(text)


def test_half_a_character_at_the_end_is_replaced_only_there(monkeypatch):
    assert written(monkeypatch, "a🙂".encode()[:-1]) == ["a", "\ufffd"]


def test_a_stop_string_across_tokens_is_cut_and_never_shown(monkeypatch):
    pieces = written(monkeypatch, b"one END two ENDING three", stop=["ENDING"])
    assert "".join(pieces) == "one END two "
    assert "E" in "".join(pieces[:8])  # what only looked like one comes as soon as it is certain
    assert written(monkeypatch, b"one EN", stop=["END"])[-1] == "EN"


def test_of_several_stop_strings_the_first_complete_one_counts(monkeypatch):
    assert "".join(written(monkeypatch, b"xxabcd", stop=["bcd", "abc"])) == "xx"
    assert "".join(written(monkeypatch, b"xxabcd", stop=["c", "abc"])) == "xx"
    assert "".join(written(monkeypatch, b"xxabcd", stop=["b", "abc", ""])) == "xxa"
    assert writing.find_stop("xxabcd", ["abc", "b"]) == 3  # also where one token holds both


def simple_cut(text, stop):
    """The text before the stop string that is complete first."""
    for end in range(len(text) + 1):
        ends = [s for s in stop if s and text[:end].endswith(s)]
        if ends:
            return text[: end - max(map(len, ends))]
    return text


@settings(deadline=None)
@given(
    st.text(alphabet="ab🙂", max_size=20),
    st.lists(st.text(alphabet="ab🙂", max_size=4), max_size=3),
    st.integers(0, 3),
)
def test_pieces_are_the_text_before_the_stop_string(text, stop, seed):
    class Chunks:
        """A tokenizer that reads several characters as one token."""

        feed, finish = staticmethod(lambda chunk: chunk), staticmethod(lambda: "")

    source, chunks = random.Random(seed), []
    writer = Writer(BYTES, stop)
    writer.decoder = Chunks()
    shown = ""
    while text.removeprefix("".join(chunks)):
        rest = text.removeprefix("".join(chunks))
        chunks.append(rest[: source.randint(1, 4)])
        shown += writer.feed(chunks[-1])
        assert simple_cut(text, stop).startswith(shown)
    assert shown + writer.finish() == simple_cut(text, stop)


def test_where_one_of_three_stops_the_others_go_on():
    texts = generate(MODEL, BYTES, "a", sampling(num_samples=3), 4)
    stop = next(c for c in texts[1] if c not in texts[0] + texts[2] and c != "\ufffd")
    stopped = generate(MODEL, BYTES, "a", sampling(num_samples=3, stop=[stop]), 4)
    assert stopped == [texts[0], texts[1][: texts[1].index(stop)], texts[2]]


# ------------------------------------------------------------------------------ the script


def make_run(run_dir, tokenizer, data, step=3):
    """A run directory as training leaves it, of a random model, which takes no time."""
    torch.manual_seed(0)
    shape = {"num_layers": 1, "num_heads": 1, "embed_dim": 8, "context_length": CONTEXT}
    sample = {"num_samples": 2, "max_new_tokens": 30, "top_k": 5}
    config = Config(model=shape, sample=sample, data=data)
    state = checkpoint.TrainingState(step=step, val_loss=1.0)
    model = GPT(config.model, tokenizer.vocab_size)
    if tokenizer is BYTES:
        with_big_weights(model)
    checkpoint.save(run_dir, state, model, [])
    storage.write_text(run_dir / "config.yaml", dump_yaml(config))
    tokenizer.save(run_dir / "tokenizer.json")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with three runs; the newest is `runs/the letters`."""
    folder = tmp_path_factory.mktemp("home")
    text = {"path": "deleted.txt", "source": "text"}
    make_run(folder / "runs" / "stories", BYTES, {})
    make_run(folder / "runs" / "all_bytes", BYTES, text)
    make_run(folder / "runs" / "the letters", Tokenizer.char("abcdefgh. \n"), text)
    return folder


@pytest.fixture
def script(home, monkeypatch, capfd):
    """A function that runs the script's `main` here: script("--seed", "1") -> what it prints."""
    spec = importlib.util.spec_from_file_location(
        "generate_script", REPOSITORY / "scripts/generate.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(home)

    def run(*arguments, answers=()):
        answers = iter(answers)
        monkeypatch.setattr("builtins.input", lambda _: next(answers))
        module.main(list(arguments))
        return capfd.readouterr().out

    return run


def test_texts_begin_with_the_prompt_and_have_a_line_between(script):
    out = script("runs/the letters", "--prompt", "abc ", "--seed", "4")
    first, second = out.split("---------------\n")
    assert first.startswith("abc ") and second.startswith("abc ")
    assert len(first) == len(second) == len("abc ") + 30 + 1
    assert out == script("--prompt=abc ", "--seed=4", "--stream")
    assert out == script("--prompt=abc ", "--seed=4", "--checkpoint=3", "--device=cpu")
    assert first == script("--prompt=abc ", "--seed=4", "--num-samples=1")
    assert out != script("--prompt=abc ", "--seed=5")


def test_a_run_writes_the_same_whatever_became_of_its_text(tiny_run, tmp_path, script):
    """Deleted, another, or no text at all: a run needs nothing but itself."""
    run_dir = shutil.copytree(tiny_run, tmp_path / "run")
    text, words = tmp_path / "a.txt", [str(run_dir), "--prompt=The ", "--seed=3"]
    config = (run_dir / "config.yaml").read_text(encoding="utf-8")
    config = re.sub(r"(?m)^  path: .*", f"  path: {text}", config)
    (run_dir / "config.yaml").write_text(config, encoding="utf-8")
    written = [script(*words)]
    for content in (b"something else " * 99, b"", b"\xff\0"):
        text.write_bytes(content)
        written.append(script(*words))
    assert len(set(written)) == 1


def test_every_option_counts(script):
    assert len(script("--num_samples=1", "--max_new_tokens=7")) == 8
    cold = script("--temperature=0", "--num-samples=1", "--seed=1")
    for option in ("--temperature=1e-8", "--top-k=1", "--top-p=0", "--top-p=1e-9", "--min-p=1"):
        assert cold == script(option, "--num-samples=1", "--seed=2")
    everything = ["--temperature=0.9", "--top-k=1000000000", "--top-p=1", "--min-p=0"]
    wild = script("--repetition-penalty=1", "--temperature=0.9", "--top-k=None")
    assert wild == script("--repetition-penalty=1", *everything)
    assert wild != script("--repetition-penalty=5", *everything)
    assert "a" in wild and "b" in wild
    stopped = script("--temperature=0.9", "--top-k=None", "--stop=b", "--stop", "a")
    assert "a" not in stopped and "b" not in stopped


def test_prompts_from_files_and_awkward_texts(script, tmp_path):
    path = tmp_path / "a prompt_1.txt"
    path.write_bytes("\ufeffabc\r\nde=f\n".encode())
    bytes_run = ["runs/all_bytes", "--num-samples=1"]
    assert script(*bytes_run, "--prompt", f"FILE:{path}").startswith("abc\nde=f")
    for prompt in ("123", "None", "a_b", "--x_y=1 # no", "Ünï? 🙂", ""):
        assert script(*bytes_run, f"--prompt={prompt}").startswith(prompt)


def test_a_story_begins_after_a_line_break_that_is_not_shown(script):
    settings = ["--num-samples=1", "--seed=1", "--top-k=None", "--temperature=3"]
    story = script("runs/stories", "--prompt=One day", *settings)
    text = script("runs/all_bytes", "--prompt=\nOne day", *settings)
    assert story.startswith("One day") and "\n" + story == text
    assert story != script("runs/all_bytes", "--prompt=One day", *settings)
    assert script("runs/stories", *settings) == script("runs/all_bytes", *settings)


def test_interactive_answers_until_an_empty_line(script):
    """A prompt that can't be read is told of, and the next one answered."""
    out = script("--interactive", "--max-new-tokens=5", answers=["abc", "xyz", "abc", ""])
    first, second = out.splitlines()
    assert first.startswith("abc") and second.startswith("abc") and first != second


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (["--temperature=-1"], CONFIG, "temperature"),
        (["--temperature=nan"], CONFIG, "temperature"),
        (["--top-k=x"], CONFIG, "top_k"),
        (["--top-k=-1"], CONFIG, "top_k"),
        (["--top-p=1.5"], CONFIG, "top_p"),
        (["--num-samples=0"], CONFIG, "num_samples"),
        (["--seed=x"], CONFIG, "seed"),
        (["--bogus=1"], CONFIG, "--bogus"),
        (["--prompt"], CONFIG, "--prompt"),
        (["--prompt=a", "--interactive"], CONFIG, "not allowed with"),
        (["--device=cuda:7"], CONFIG, "cuda:7"),
        (["--checkpoint=9"], DATA, "there are best, last, 3"),
        (["runs/none"], DATA, "runs/none"),
        (["--prompt=FILE:none.txt"], DATA, "none.txt: No such file"),
        (["--prompt=FILE:runs"], DATA, "runs: Is a directory"),
        (["--prompt=FILE:latin-1.txt"], DATA, "latin-1.txt: byte 3"),
        (["--prompt=Ünï?"], DATA, "Ü"),
    ],
)
def test_a_mistake_is_one_line(script, home, arguments, exit_code, words):
    (home / "latin-1.txt").write_bytes("café".encode("latin-1"))
    with pytest.raises(UserError) as caught:
        script(*arguments)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == exit_code


def test_no_run_at_all_is_one_line(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="scripts/train.py"):
        script()


def test_help_and_mistakes_come_before_pytorch(home):
    program = f"""
import runpy, sys
sys.argv[1:] = sys.argv[1:]
try:
    runpy.run_path({str(REPOSITORY / "scripts/generate.py")!r}, run_name="__main__")
finally:
    print(sorted({{"torch", "numpy"}} & set(sys.modules)))
"""
    for arguments, code in (
        (["--help"], 0),
        (["--top-k=x"], CONFIG),
        (["runs/none"], DATA),
        (["--checkpoint=9"], DATA),
        (["--checkpoint=²"], DATA),
    ):
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(command, cwd=home, capture_output=True, encoding="utf-8", check=False)
        assert done.stdout.endswith("[]\n")
        assert done.returncode == code


def test_the_real_process_writes_the_same_on_a_console_that_lacks_characters(home, script):
    arguments = ["runs/all_bytes", "--max-new-tokens=40", "--temperature=2"]
    expected = script(*arguments, "--prompt=é🙂").encode("ascii", "backslashreplace").decode()
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    arguments += ["--prompt", "-"]
    done = run_script("generate.py", *arguments, cwd=home, input="é🙂\n", env=ascii_only)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", expected)
    assert done.stdout.startswith(r"\xe9\U0001f642")


@pytest.mark.parametrize("how", ["closed pipe", "Ctrl-C"])
def test_writing_that_nobody_wants_any_more_ends_quietly(home, how):
    script = str(REPOSITORY / "scripts" / "generate.py")
    command = [sys.executable, script, "--max-new-tokens=1000000", "--stream"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=home, stdout=pipe, stderr=pipe) as process:
        process.stdout.read(20)
        if how == "Ctrl-C":
            process.send_signal(signal.SIGINT)
            process.stdout.read()
        process.stdout.close()
        said = process.stderr.read().decode().splitlines()[1:]  # after the run's name
        assert process.wait(timeout=20) == (130 if how == "Ctrl-C" else 0)
        assert said == (["error: stopped"] if how == "Ctrl-C" else [])
