"""D: a number that is none stops the run before it is learned from or kept, and is named."""

import math

import pytest
import torch

from minigpt import saved_runs
from minigpt.errors import NON_FINITE, UserError
from minigpt.trainer import Trainer

VALUES = [math.nan, math.inf, -math.inf]


def weight(name):
    def put(trainer, value):
        tensor = dict(trainer.model.named_parameters())[name]
        with torch.no_grad():
            tensor.view(-1)[0] = value

    return put


def gradient(name):
    def put(trainer, value):
        tensor = dict(trainer.model.named_parameters())[name]

        def spoil(gradient):
            gradient = gradient.clone()
            gradient.view(-1)[-1] = value
            return gradient

        tensor.register_hook(spoil)

    return put


def memory(key):
    def put(trainer, value):
        first = next(iter(trainer.optimizers[0].state.values()))
        first[key].view(-1)[0] = value

    return put


def average(trainer, value):
    trainer.average.tensors["final_norm.weight"][0] = value


def loss(micro_step):
    def put(trainer, value):
        forward, calls = trainer.forward, iter(range(99))

        def spoilt(x):
            logits = forward(x)
            return logits * value if next(calls) == micro_step else logits

        trainer.forward = spoilt

    return put


def after_the_update(trainer, value):
    step = trainer.optimizers[0].step

    def spoilt():
        step()
        weight("final_norm.weight")(trainer, value)

    trainer.optimizers[0].step = spoilt


EMBEDDING, MATRIX = "token_embedding.weight", "blocks.0.attention.W_value.weight"
SITES = {
    "embedding": (weight(EMBEDDING), EMBEDDING),
    "matrix": (weight(MATRIX), MATRIX),
    "norm": (weight("final_norm.weight"), "final_norm.weight"),
    "gradient of embedding": (gradient(EMBEDDING), EMBEDDING),
    "gradient of matrix": (gradient(MATRIX), MATRIX),
    "gradient of norm": (gradient("final_norm.weight"), "final_norm.weight"),
    "loss of the first micro-batch": (loss(0), "loss"),
    "loss of the second micro-batch": (loss(1), "loss"),
    "AdamW's mean": (memory("exp_avg"), "weight|exp_avg"),
    "AdamW's mean square": (memory("exp_avg_sq"), "weight|exp_avg_sq"),
    "averaged weights": (average, "validation loss|final_norm.weight"),
    "the update itself": (after_the_update, "final_norm.weight"),
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("site", SITES)
def test_it_stops_and_names_step_and_tensor(golden, tmp_path, record, site, value):
    settings = ["ema=0.5", "accumulate=2"]
    run_dir = tmp_path / "run"
    golden.stopped_at(8, run_dir, *settings)
    folder = run_dir / "checkpoints" / "step-00000008"
    before = {path: path.read_bytes() for path in folder.iterdir()}
    trainer = Trainer(golden.config(*settings), golden.corpus, run_dir, folder)
    put, culprit = SITES[site]
    put(trainer, value)
    weights = {n: w.detach().clone() for n, w in trainer.model.named_parameters()}
    with pytest.raises(UserError, match=rf"step (9|10): .*({culprit}).*finite") as caught:
        trainer.run()
    assert caught.value.exit_code == NON_FINITE
    assert "\n" not in str(caught.value)
    assert saved_runs.checkpoints(run_dir)[-1] == folder  # no bad one was kept beside it
    for path, data in before.items():
        assert path.read_bytes() == data
    if trainer.state.step == 8:  # nothing was learned from it
        for name, now in trainer.model.named_parameters():
            assert torch.equal(now.nan_to_num(7), weights[name].nan_to_num(7)), name
    record("D", 1)
