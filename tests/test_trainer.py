"""Training keeps its promises: exact resume, inert observers, equal accumulation, clear stops."""

import functools
import json
import math
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from conftest import REPOSITORY, TINY, run_script
from safetensors.torch import load_file

from minigpt import checkpoint, choosing, saved_runs, storage
from minigpt.command_line import load_config
from minigpt.data import Corpus, Split
from minigpt.errors import DATA, NON_FINITE, UserError
from minigpt.loss import NOTHING, evaluate, mean_loss
from minigpt.stories import corpus as story_corpus
from minigpt.text import open_text
from minigpt.tokenizer import Tokenizer
from minigpt.trainer import Trainer, train

CPU = ["device=cpu"]


@pytest.fixture
def tiny(tmp_path, text_file, monkeypatch):
    """A function that trains: tiny("name", "key=value", …) -> run directory."""
    monkeypatch.chdir(tmp_path)

    def run(name, *overrides, resume=False):
        config = load_config(None, [f"data.path={text_file}", *TINY, *overrides])
        corpus = open_text(config)
        run_dir = tmp_path / name
        train(config, corpus, run_dir, resume=resume)
        return run_dir

    return run


def weights(run_dir, which="last"):
    return load_file(saved_runs.find_checkpoint(run_dir, which) / "model.safetensors")


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def stopped_at(config_overrides, text_file, run_dir, step):
    """Trains as a run does that a signal stops after `step` steps."""
    config = load_config(None, [f"data.path={text_file}", *TINY, *config_overrides])
    trainer_stop = Trainer.train_step

    def step_then_signal(self):
        trainer_stop(self)
        if self.state.step == step:
            signal.raise_signal(signal.SIGINT)

    Trainer.train_step = step_then_signal
    try:
        return train(config, open_text(config), run_dir)
    finally:
        Trainer.train_step = trainer_stop


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("extra", ["model.dropout=0.2", "train.accumulate=2", "train.ema=0.9"])
@pytest.mark.parametrize("step", [3, 5])
def test_stopped_and_resumed_is_byte_for_byte_uninterrupted(
    tiny, tmp_path, text_file, optimizer, extra, step
):
    overrides = [f"train.optimizer={optimizer}", extra]
    whole = tiny("whole", *overrides)
    assert stopped_at(overrides, text_file, tmp_path / "parts", step) == 130
    parts = tiny("parts", *overrides, resume=True)
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        ends = [saved_runs.find_checkpoint(run, "last") / name for run in (whole, parts)]
        assert ends[0].read_bytes() == ends[1].read_bytes(), name
    steps = [r["step"] for r in read_lines(parts / "metrics.jsonl") if "train_loss" in r]
    assert steps == list(range(1, 13))


def test_resumed_by_its_name_alone_even_the_rest_of_the_files_are_the_same(
    tiny, text_file, tmp_path
):
    (tmp_path / "parts").mkdir()
    assert stopped_at([], text_file, tmp_path / "parts" / "run", 7) == 130
    done = run_script("train.py", "--resume", "parts/run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    parts, whole = tmp_path / "parts" / "run", tiny("whole/run")
    ends = [saved_runs.find_checkpoint(run, "last") for run in (parts, whole)]
    for pair in (ends, (parts, whole)):
        files = [
            {f.name: f.read_bytes() for f in folder.iterdir() if f.is_file()} for folder in pair
        ]
        timed = {"metrics.jsonl", "summary.json", ".lock"}  # seconds; the process
        differing = {
            name for name in files[0] | files[1] if files[0].get(name) != files[1].get(name)
        }
        assert differing <= timed


def test_resuming_repeats_what_was_chosen_when_the_run_began(tiny):
    run_dir = tiny("run", "precision=bfloat16", "threads=1", "max_steps=4")
    tiny("run", "max_steps=6", resume=True)  # both left open, as in the file it began with
    kept = load_config(run_dir / "config.yaml", [])
    assert (kept.precision, kept.threads, kept.train.max_steps) == ("bfloat16", 1, 6)
    tiny("run", "precision=float32", "max_steps=8", resume=True)
    assert load_config(run_dir / "config.yaml", []).precision == "float32"


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_evaluating_sampling_saving_and_logging_change_no_weight(tiny):
    often = ["eval_interval=1", "sample_interval=1", "log_interval=1", "save_interval=1"]
    seldom = ["eval_interval=50", "sample_interval=50", "log_interval=50", "save_interval=50"]
    assert same(weights(tiny("often", *often)), weights(tiny("seldom", *seldom)))


def test_four_micro_batches_are_one_batch(tiny):
    one = weights(tiny("one", "batch_size=8", "accumulate=1", "max_steps=3", "optimizer=adamw"))
    four = weights(tiny("four", "batch_size=2", "accumulate=4", "max_steps=3", "optimizer=adamw"))
    for name in one:
        torch.testing.assert_close(one[name], four[name], rtol=1e-3, atol=1e-5)


def gradients(corpus, run_dir, *overrides):
    config = load_config(None, ["data.path=x", *TINY, *overrides])
    trainer = Trainer(config, corpus, run_dir)
    loss, num_tokens = trainer.accumulate_gradients()
    return loss, num_tokens, {n: p.grad for n, p in trainer.model.named_parameters()}


class Ragged(Split):
    """Rows in which more or less is left to predict."""

    def batch(self, *place, **size):
        x, y = super().batch(*place, **size)
        return x, np.where(x < 4, NOTHING, y)


def test_micro_batches_of_unequal_token_counts_are_one_batch_too(tmp_path):
    split = Ragged(np.arange(200) % 41, 200)
    corpus = Corpus("x", Tokenizer.byte(), split, split, "")
    one = gradients(corpus, tmp_path, "batch_size=8", "accumulate=1")
    four = gradients(corpus, tmp_path, "batch_size=2", "accumulate=4")
    rows = split.batch(1337, 0, batch_size=8, context_length=24)[1]
    assert len({(two_rows != NOTHING).sum() for two_rows in np.split(rows, 4)}) > 1
    assert one[:2] == pytest.approx(four[:2])
    for name, gradient in one[2].items():
        torch.testing.assert_close(gradient, four[2][name], rtol=1e-4, atol=1e-7)


def test_the_last_step_is_evaluated_and_saved_whatever_the_intervals(tiny):
    run_dir = tiny("short", "max_steps=7", "eval_interval=1000", "save_interval=1000")
    summary = json.loads((run_dir / "summary.json").read_text())
    assert saved_runs.step_of(saved_runs.find_checkpoint(run_dir, "last")) == summary["steps"] == 7
    assert math.isfinite(summary["last_val_loss"])


def test_checkpoints_come_as_often_as_asked_between_evaluations(tiny):
    run_dir = tiny("saved", "save_interval=2", "eval_interval=5", "keep=50")
    steps = [saved_runs.step_of(folder) for folder in saved_runs.checkpoints(run_dir)]
    assert steps == [2, 4, 5, 6, 8, 10, 12]
    evaluated = [saved_runs.read_state(f).val_loss for f in saved_runs.checkpoints(run_dir)]
    assert [loss is not None for loss in evaluated] == [s in (5, 10, 12) for s in steps]


SUMMARY = {"best_val_loss", "best_step", "last_val_loss", "bits_per_byte", "floor", "slots"}
SUMMARY |= {"steps", "tokens", "train_seconds", "tokens_per_second", "parameters"}


def test_a_run_holds_what_it_promises(tiny_run):
    made = {path.name for path in tiny_run.iterdir()}
    assert made >= {
        "config.yaml",
        "tokenizer.json",
        "metrics.jsonl",
        "samples.txt",
        "loss.png",
        "summary.json",
        "checkpoints",
    }
    summary = json.loads((tiny_run / "summary.json").read_text())
    assert summary.keys() == SUMMARY
    assert summary["steps"] == 12
    assert summary["best_val_loss"] <= summary["last_val_loss"]
    assert (tiny_run / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_the_bits_of_the_summary_belong_to_its_loss(tiny):
    run_dir = tiny("wild", "learning_rate=1", "schedule=constant", "eval_interval=1")
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["best_step"] < summary["steps"]
    evaluated = [r for r in read_lines(run_dir / "metrics.jsonl") if "val_loss" in r]
    (best,) = (r for r in evaluated if r["step"] == summary["best_step"])
    assert summary["best_val_loss"] == best["val_loss"]
    assert summary["bits_per_byte"] == best["bits_per_byte"]


def test_the_summary_tells_the_loss_over_the_whole_split(tiny_run):
    run = checkpoint.load_run(tiny_run, "last")
    corpus = open_text(run.config)
    losses = evaluate(run.model, corpus.val, run.config.model.context_length)
    assert np.isnan(losses).sum() == 1  # the first token alone has nothing before it
    summary = json.loads((tiny_run / "summary.json").read_text())
    assert mean_loss(losses) == pytest.approx(summary["last_val_loss"], abs=1e-5)


def test_a_run_on_stories_tells_the_floor_and_the_loss_by_slot(tmp_path, monkeypatch):
    monkeypatch.setattr(story_corpus, "NUM_STORIES", {"train": 40, "val": 9})
    config = load_config(None, [*TINY, "context_length=32"])
    stories = story_corpus.open_stories(config, tmp_path / "cache")
    train(config, stories, tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["floor"] == pytest.approx(stories.floor.mean)
    assert 0 < summary["floor"] < summary["best_val_loss"]
    assert summary["slots"].keys() == set(stories.floor.names) - {"start"}
    assert all(slot.keys() == {"loss", "floor", "share"} for slot in summary["slots"].values())
    assert sum(slot["share"] for slot in summary["slots"].values()) == pytest.approx(1, abs=0.01)


def test_log_lines_are_those_that_people_parse(tiny, capsys):
    tiny("run", "log_interval=4")
    lines = capsys.readouterr().out.splitlines()
    iterations = [re.fullmatch(r"iter (\d+): loss \d+\.\d+, time \d+\.\d\dms", x) for x in lines]
    assert [int(found[1]) for found in iterations if found] == [4, 8, 12]
    pattern = r"step (\d+): train loss \d+\.\d{4}, val loss \d+\.\d{4}"
    evaluations = [re.fullmatch(pattern, line) for line in lines]
    assert [int(found[1]) for found in evaluations if found] == [5, 10, 12]


@pytest.fixture
def script(tmp_path, monkeypatch, capsys):
    """A function that runs `main` of scripts/train.py here: script("max_steps=3") -> its lines."""
    main = runpy.run_path(str(REPOSITORY / "scripts" / "train.py"))["main"]
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        assert main(list(arguments)) == 0
        return capsys.readouterr().out.splitlines()

    return run


def test_resume_takes_the_newest_run_or_the_one_named_and_keeps_its_settings(script, text_file):
    for number in (1, 2):
        lines = script(f"data.path={text_file}", *TINY, "max_steps=4", f"seed={number}")
        assert lines[-1] == f"  python scripts/explore.py runs/animals-{number}"
    script("--resume", "max_steps=6")
    script("--resume", "runs/animals-1", "--max-steps=5")
    for number, steps in ((1, 5), (2, 6)):
        run = checkpoint.load_run(f"runs/animals-{number}", "last")
        assert (run.step, run.config.seed, run.config.train.max_steps) == (steps, number, steps)


def test_the_best_checkpoint_survives_later_worse_ones(tiny):
    run_dir = tiny("worse", "learning_rate=0.3", "max_steps=30", "eval_interval=2", "ema=None")
    summary = json.loads((run_dir / "summary.json").read_text())
    best = saved_runs.read_state(saved_runs.find_checkpoint(run_dir, "best"))
    assert best.val_loss == summary["best_val_loss"]
    assert len(saved_runs.checkpoints(run_dir)) <= 3


def test_patience_stops_an_overfitting_run_and_keeps_the_best(tiny):
    run_dir = tiny(
        "patient", "max_steps=2000", "eval_interval=5", "patience=3", "learning_rate=0.05"
    )
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["steps"] < 2000
    assert summary["steps"] - summary["best_step"] == 15


def test_a_time_budget_ends_the_run_with_its_schedule(tiny):
    run_dir = tiny("timed", "max_steps=1000000", "max_minutes=0.03", "eval_interval=10000")
    summary = json.loads((run_dir / "summary.json").read_text())
    assert 0 < summary["steps"] < 1000000
    rates = [r["learning_rate"] for r in read_lines(run_dir / "metrics.jsonl") if "train_loss" in r]
    assert rates[-1] < 0.1 * max(rates)


def test_a_wild_learning_rate_stops_with_the_step_and_leaves_the_last_good_checkpoint(tiny):
    run_dir = tiny("run")
    before = weights(run_dir)
    wild = ["learning_rate=1e30", "grad_clip=None", "max_steps=30", "schedule=constant"]
    with pytest.raises(UserError, match=r"step \d+: the .*step 12.*learning_rate") as caught:
        tiny("run", *wild, resume=True)
    assert caught.value.exit_code == NON_FINITE
    assert same(before, weights(run_dir))


def test_resume_refuses_a_changed_model_and_names_it(tiny):
    tiny("run")
    with pytest.raises(UserError, match=r"model\.num_layers 2 -> 1"):
        tiny("run", "model.num_layers=1", resume=True)


def test_resume_refuses_another_text(tiny, text_file, tmp_path):
    tiny("run")
    other = tmp_path / "other.txt"
    other.write_text(text_file.read_text() + "More.\n" * 9)
    with pytest.raises(UserError, match="corpus is not the one") as caught:
        tiny("run", f"data.path={other}", resume=True)
    assert caught.value.exit_code == DATA


def test_a_finished_run_resumes_with_no_steps_left_and_with_more(tiny):
    run_dir = tiny("run")
    before = weights(run_dir)
    tiny("run", resume=True)
    assert same(before, weights(run_dir))
    tiny("run", "max_steps=15", resume=True)
    assert saved_runs.step_of(saved_runs.find_checkpoint(run_dir, "last")) == 15


def test_twenty_steps_are_ten_and_then_ten_more(tiny):
    """As a user goes on, with a larger max_steps; a rate that falls would fall differently."""
    whole = tiny("whole", "schedule=constant", "warmup_steps=4", "max_steps=20")
    tiny("parts", "schedule=constant", "warmup_steps=4", "max_steps=10")
    parts = tiny("parts", "schedule=constant", "warmup_steps=4", "max_steps=20", resume=True)
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        ends = [saved_runs.find_checkpoint(run, "last") / name for run in (whole, parts)]
        assert ends[0].read_bytes() == ends[1].read_bytes(), name


def test_a_second_run_in_the_same_folder_is_refused(tiny):
    tiny("run")
    with pytest.raises(UserError, match="already holds a run"):
        tiny("run")


def test_resume_falls_back_from_a_damaged_checkpoint_and_says_so(tiny, capsys):
    run_dir = tiny("run")
    newest = saved_runs.find_checkpoint(run_dir, "last")
    data = bytearray((newest / "model.safetensors").read_bytes())
    data[len(data) // 2] ^= 1
    (newest / "model.safetensors").write_bytes(data)
    with pytest.raises(UserError, match=r"model\.safetensors: damaged"):
        checkpoint.load_run(run_dir, "last")
    tiny("run", resume=True)
    assert f"{newest.name} is damaged" in capsys.readouterr().out
    checkpoint.load_run(run_dir, "last")


def test_a_damaged_manifest_is_one_line(tiny):
    run_dir = tiny("run")
    newest = saved_runs.find_checkpoint(run_dir, "last")
    for content in ("", "[]", "null", "{}", '{"digest": 1}', "\0"):
        (newest / "manifest.json").write_text(content)
        with pytest.raises(UserError, match=r"manifest\.json: damaged or incomplete"):
            checkpoint.load_run(run_dir, "last")


def test_strangers_among_the_checkpoints_are_left_alone(tiny):
    run_dir = tiny("run")
    folder = run_dir / "checkpoints"
    (folder / "step-7").write_text("a file")
    shutil.copytree(saved_runs.find_checkpoint(run_dir, "last"), folder / "step-00000012 (copy)")
    tiny("run", "max_steps=30", resume=True)
    assert saved_runs.step_of(saved_runs.find_checkpoint(run_dir, "last")) == 30
    assert {"step-7", "step-00000012 (copy)"} < {path.name for path in folder.iterdir()}


def test_a_torn_log_does_not_stop_a_resume(tiny):
    run_dir = tiny("run")
    for line in (b"torn", b'{"step": 3', b"[1]", b"{}", b"\xff\xfe"):
        with (run_dir / "metrics.jsonl").open("ab") as file:
            file.write(line + b"\n")
    (run_dir / "samples.txt").write_bytes(
        b"======== step 5\n a text that says ======== step x\n======== step y\n\xff\n"
        b"======== step 99\nlater\n"
    )
    (run_dir / "tokenizer.json").unlink()
    tiny("run", "max_steps=14", resume=True)
    steps = [r["step"] for r in read_lines(run_dir / "metrics.jsonl") if "train_loss" in r]
    assert steps == list(range(1, 15))
    samples = (run_dir / "samples.txt").read_text(encoding="utf-8")
    assert samples.startswith("======== step 5\n a text that says ======== step x\n")
    assert "later" not in samples
    checkpoint.load_run(run_dir, "last")


def kill_at_call(number):
    calls = iter(range(number))
    return lambda *_: next(calls, None) is not None or os._exit(9)


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_process_killed_while_saving_leaves_whole_checkpoints_only(tiny):
    run_dir = tiny("run")
    run = checkpoint.load_run(run_dir, "last")
    state = checkpoint.TrainingState(step=13)
    for kill_at in range(99):
        if (child := os.fork()) == 0:
            storage.on_failpoint = kill_at_call(kill_at)
            checkpoint.save(run_dir, state, run.model, [])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        newest, damaged = saved_runs.last_good(run_dir)
        assert saved_runs.step_of(newest) in (12, 13) and not damaged
        if status == 0:
            break
        storage.remove_leftovers(run_dir / "checkpoints")
        shutil.rmtree(run_dir / "checkpoints" / "step-00000013", ignore_errors=True)
    assert kill_at > 10
    assert saved_runs.step_of(newest) == 13


@pytest.mark.parametrize("rate", [0.5, 10])
def test_the_best_stays_the_best_across_a_resume(tiny, rate):
    run_dir = tiny("run")
    best = saved_runs.find_checkpoint(run_dir, "best")
    before = weights(run_dir, "best")
    worse = [f"learning_rate={rate}", "max_steps=20", "schedule=constant", "eval_interval=4"]
    tiny("run", *worse, resume=True)
    assert saved_runs.step_of(saved_runs.find_checkpoint(run_dir, "last")) == 20
    assert saved_runs.find_checkpoint(run_dir, "best") == best
    assert same(before, weights(run_dir, "best"))


@pytest.mark.parametrize("tied", [True, False])
def test_tied_and_untied_weights_come_back_as_they_were(tiny, tied):
    run_dir = tiny("run", f"model.tie_embeddings={tied}", "max_steps=2")
    model = checkpoint.load_run(run_dir, "last").model
    assert ("head.weight" in weights(run_dir)) == (not tied)
    assert (model.head.weight is model.token_embedding.weight) == tied
    checkpoint.save(run_dir, checkpoint.TrainingState(step=3), model, [])
    again = checkpoint.load_run(run_dir, 3).model
    assert same(model.state_dict(), again.state_dict())


@pytest.mark.parametrize("first", ["on", "off"])
def test_trained_compiled_or_not_is_one_run(tiny, monkeypatch, first):
    """Compiled for real as far as the names go; the code made is left out, which takes long."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    run_dir = tiny("run", f"compile={first}", "max_steps=2")
    plain = tiny("plain", "compile=off", "max_steps=2")
    assert weights(run_dir).keys() == weights(plain).keys()
    other = {"on": "off", "off": "on"}[first]
    tiny("run", f"compile={other}", "max_steps=3", resume=True)
    assert checkpoint.load_run(run_dir, "last").step == 3


def test_bfloat16_trains_without_a_warning(tiny):
    summary = json.loads((tiny("run", "precision=bfloat16") / "summary.json").read_text())
    assert summary["last_val_loss"] < 5.6


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_attention_and_muon_take_the_fast_way_of_the_format(tmp_path, text_file, precision):
    config = load_config(None, [f"data.path={text_file}", *TINY, f"precision={precision}", *CPU])
    trainer = Trainer(config, open_text(config), tmp_path)
    in_bfloat16 = precision == "bfloat16"  # there PyTorch's kernel has a slow way back
    assert all(block.attention.fused != in_bfloat16 for block in trainer.model.blocks)
    assert trainer.optimizers[1].precision == (torch.bfloat16 if in_bfloat16 else torch.float32)


def test_a_run_keeps_the_format_that_was_faster_when_it_began(tiny, monkeypatch):
    """Whatever is faster when it is resumed: the same run as one that was asked for it."""
    monkeypatch.setattr(choosing, "faster_precision", lambda config: ("bfloat16", None))
    run_dir = tiny("run", "max_steps=4")
    assert load_config(run_dir / "config.yaml", []).precision == "bfloat16"
    monkeypatch.setattr(choosing, "faster_precision", lambda config: ("float32", None))
    asked = tiny("asked", "max_steps=4", "precision=bfloat16")
    tiny("asked", "max_steps=8", "precision=bfloat16", resume=True)
    kept = load_config(run_dir / "config.yaml", [f"run_dir={run_dir}", "max_steps=8"])
    train(kept, open_text(kept), run_dir, resume=True)
    assert same(weights(run_dir), weights(asked))


def test_a_moved_run_without_its_text_still_loads(tiny_run, tmp_path):
    moved = tmp_path / "a b" / "moved"
    shutil.copytree(tiny_run, moved)
    assert checkpoint.load_run(moved).model.num_parameters > 0


@pytest.mark.parametrize("name", ["model.safetensors", "state.json"])
def test_nonsense_with_a_right_digest_is_one_line(tiny_run, tmp_path, name):
    shutil.copytree(tiny_run, tmp_path / "run")
    (folder, *_) = saved_runs.checkpoints(tmp_path / "run")
    for content in (b"", b"[]", b"\xff" * 8 + b"{}"):
        (folder / "manifest.json").unlink()
        (folder / name).write_bytes(content)
        storage.write_json(folder / "manifest.json", checkpoint.manifest(folder))
        with pytest.raises(UserError, match=f"{name}: damaged or incomplete") as caught:
            checkpoint.load_run(tmp_path / "run", saved_runs.step_of(folder))
        assert caught.value.exit_code == DATA


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("embed_dim: 32", r"token_embedding\.weight is \d+ × 16, not \d+ × 32; put back"),
        ("num_layers: 3", r"blocks\.2\.attention_norm\.weight is missing; put back"),
        ("num_layers: 1", r"blocks\.1\.\S+ is too much; put back"),
    ],
)
def test_weights_of_other_settings_are_one_line(tiny_run, tmp_path, setting, words):
    shutil.copytree(tiny_run, tmp_path / "run")
    path = tmp_path / "run" / "config.yaml"
    name = setting.partition(":")[0]
    path.write_text(re.sub(rf"{name}: \d+", setting, path.read_text()))
    with pytest.raises(UserError, match=rf"step-\d+: does not fit .*: {words}"):
        checkpoint.load_run(tmp_path / "run")


def test_steps_sort_as_numbers(tmp_path):
    for step in (900, 10000, 100000000):
        (tmp_path / "checkpoints" / f"step-{step:08d}").mkdir(parents=True)
    found = [saved_runs.step_of(folder) for folder in saved_runs.checkpoints(tmp_path)]
    assert found == [900, 10000, 100000000]


def test_pickled_weights_are_refused_in_one_line():
    with pytest.raises(UserError, match="pickled weights can run code"):
        checkpoint.load_run("model.pt")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_ends_with_its_exit_code(tmp_path, text_file, number):
    settings = [*TINY, "max_steps=1000000", "max_minutes=1", "run_dir=run"]
    script = str(REPOSITORY / "scripts" / "train.py")
    command = [sys.executable, script, f"data.path={text_file}", *settings]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as process:
        while not process.stdout.readline().startswith("iter 20:"):
            assert process.poll() is None
        started = time.monotonic()
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    assert "Traceback" not in errors
    assert time.monotonic() - started < 20
    assert checkpoint.load_run(tmp_path / "run", "last").step >= 20


def test_training_survives_a_console_that_cannot_print_the_sample(tmp_path):
    (tmp_path / "greek.txt").write_text("αβγ δεζ ηθι — κλμ\n" * 60, encoding="utf-8")
    done = run_script(
        "train.py",
        "data.path=greek.txt",
        *TINY,
        cwd=tmp_path,
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
