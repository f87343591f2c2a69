"""B1, B3: stopped and resumed is byte for byte uninterrupted, and who looks on changes nothing."""

import itertools

import pytest

from minigpt import saved_runs
from minigpt.training_log import read_metrics

from .golden import hash_of

SHORT = ["train.max_steps=12", "eval_interval=5", "save_interval=4"]
CHOICES = [*itertools.product((1, 3), (0.0, 0.2), ("adamw", "muon"), ("None", "0.5"))]
MOMENTS = (1, 4, 5, 7, 10)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_resumed_is_uninterrupted(golden, tmp_path, record, choice):
    accumulate, dropout, optimizer, clip = choice
    settings = [f"accumulate={accumulate}", f"dropout={dropout}", f"optimizer={optimizer}"]
    settings += [f"grad_clip={clip}", *SHORT]
    golden.train(tmp_path / "whole", *settings)
    (whole,) = saved_runs.checkpoints(tmp_path / "whole")[-1:]
    for moment in MOMENTS:
        run_dir = tmp_path / f"stopped-{moment}"
        golden.stopped_at(moment, run_dir, *settings)
        golden.train(run_dir, *settings, resume=True)
        assert hash_of(run_dir / "checkpoints" / whole.name) == hash_of(whole), f"at step {moment}"
        logs = [
            [(r["step"], r.get("train_loss"), r.get("val_loss")) for r in read_metrics(run)]
            for run in (run_dir, tmp_path / "whole")
        ]
        assert logs[0] == logs[1], f"at step {moment}"
    record("B1", len(MOMENTS))


@pytest.mark.parametrize("save", [1, 7, 50])
@pytest.mark.parametrize("sample", [1, 20])
@pytest.mark.parametrize("log", [1, 13])
def test_who_looks_on_changes_nothing(golden, tmp_path, record, save, sample, log):
    seen = []
    golden.train(
        tmp_path / "run",
        f"save_interval={save}",
        f"sample_interval={sample}",
        f"log_interval={log}",
        "sample.num_samples=2",
        observers=[lambda step, model: seen.append(sum(w.sum() for w in model.parameters()))],
    )
    golden.require(tmp_path / "run", 60)
    record("B3", 1)


@pytest.mark.parametrize("interval", [1, 3, 60])
def test_evaluating_changes_no_weight(golden, tmp_path, record, interval):
    golden.train(tmp_path / "run", f"eval_interval={interval}", "save_interval=60")
    newest = saved_runs.checkpoints(tmp_path / "run")[-1]
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (newest / name).read_bytes() == (golden.checkpoint(60) / name).read_bytes()
    record("B3", 1)
