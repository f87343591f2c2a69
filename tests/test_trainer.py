"""Training keeps its promises: exact resume, inert observers, equal accumulation, clear stops."""

import json
import math
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

from minigpt import checkpoint
from minigpt.command_line import load_config
from minigpt.errors import DATA, NON_FINITE, UserError
from minigpt.loss import evaluate, mean_loss
from minigpt.text import open_text
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
    return load_file(checkpoint.find_checkpoint(run_dir, which) / "model.safetensors")


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
        ends = [checkpoint.find_checkpoint(run, "last") / name for run in (whole, parts)]
        assert ends[0].read_bytes() == ends[1].read_bytes(), name
    steps = [r["step"] for r in read_lines(parts / "metrics.jsonl") if "train_loss" in r]
    assert steps == list(range(1, 13))


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


def test_the_last_step_is_evaluated_and_saved_whatever_the_intervals(tiny):
    run_dir = tiny("short", "max_steps=7", "eval_interval=1000", "save_interval=1000")
    summary = json.loads((run_dir / "summary.json").read_text())
    assert checkpoint.step_of(checkpoint.find_checkpoint(run_dir, "last")) == summary["steps"] == 7
    assert math.isfinite(summary["last_val_loss"])


def test_checkpoints_come_as_often_as_asked_between_evaluations(tiny):
    run_dir = tiny("saved", "save_interval=2", "eval_interval=5", "keep=50")
    steps = [checkpoint.step_of(folder) for folder in checkpoint.checkpoints(run_dir)]
    assert steps == [2, 4, 5, 6, 8, 10, 12]
    evaluated = [checkpoint.read_state(f).val_loss for f in checkpoint.checkpoints(run_dir)]
    assert [loss is not None for loss in evaluated] == [s in (5, 10, 12) for s in steps]


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
    assert summary["steps"] == 12
    assert summary["best_val_loss"] <= summary["last_val_loss"]
    assert (tiny_run / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_the_summary_tells_the_loss_over_the_whole_split(tiny_run):
    run = checkpoint.load_run(tiny_run, "last")
    corpus = open_text(run.config)
    losses = evaluate(run.model, corpus.val, run.config.model.context_length)
    assert np.isnan(losses).sum() == 1  # the first token alone has nothing before it
    summary = json.loads((tiny_run / "summary.json").read_text())
    assert mean_loss(losses) == pytest.approx(summary["last_val_loss"], abs=1e-5)


def test_the_best_checkpoint_survives_later_worse_ones(tiny):
    run_dir = tiny("worse", "learning_rate=0.3", "max_steps=30", "eval_interval=2", "ema=None")
    summary = json.loads((run_dir / "summary.json").read_text())
    best = checkpoint.read_state(checkpoint.find_checkpoint(run_dir, "best"))
    assert best.val_loss == summary["best_val_loss"]
    assert len(checkpoint.checkpoints(run_dir)) <= 3


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
    assert checkpoint.step_of(checkpoint.find_checkpoint(run_dir, "last")) == 15


def test_a_second_run_in_the_same_folder_is_refused(tiny):
    tiny("run")
    with pytest.raises(UserError, match="already holds a run"):
        tiny("run")


def test_resume_falls_back_from_a_damaged_checkpoint_and_says_so(tiny, capsys):
    run_dir = tiny("run")
    newest = checkpoint.find_checkpoint(run_dir, "last")
    data = bytearray((newest / "model.safetensors").read_bytes())
    data[len(data) // 2] ^= 1
    (newest / "model.safetensors").write_bytes(data)
    with pytest.raises(UserError, match=r"model\.safetensors: damaged"):
        checkpoint.load_run(run_dir, "last")
    tiny("run", resume=True)
    assert f"{newest.name} is damaged" in capsys.readouterr().out
    checkpoint.load_run(run_dir, "last")


def test_a_moved_run_without_its_text_still_loads(tiny_run, tmp_path):
    moved = tmp_path / "a b" / "moved"
    shutil.copytree(tiny_run, moved)
    assert checkpoint.load_run(moved).model.num_parameters > 0


def test_steps_sort_as_numbers(tmp_path):
    for step in (900, 10000, 100000000):
        (tmp_path / "checkpoints" / f"step-{step:08d}").mkdir(parents=True)
    found = [checkpoint.step_of(folder) for folder in checkpoint.checkpoints(tmp_path)]
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
