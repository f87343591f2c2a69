"""Schedules rise and fall as named; Muon is PyTorch's Muon in better arithmetic."""

import pytest
import torch

from minigpt.config import ModelConfig, TrainConfig
from minigpt.model import GPT
from minigpt.optim import SCHEDULES, Muon, build_optimizers, learning_rate, orthogonalised


def rates(schedule, **settings):
    plain = {"max_steps": 100, "warmup_steps": 10, "learning_rate": 1.0}
    config = TrainConfig(schedule=schedule, **plain | settings)
    return [learning_rate(config, step, step / config.max_steps) for step in range(101)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_warms_up_and_never_rises_again(schedule):
    found = rates(schedule, min_learning_rate=0.1)
    assert found[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert all(one >= other for one, other in zip(found[10:], found[11:], strict=False))
    assert found[-1] == pytest.approx(1.0 if schedule == "constant" else 0.1)


def test_schedules_by_hand():
    assert rates("linear")[60] == pytest.approx(0.4)
    assert rates("cosine")[50] == pytest.approx(0.5)
    assert rates("wsd")[79] == pytest.approx(1.0)
    assert rates("wsd")[90] == pytest.approx(0.5)


def test_a_run_shorter_than_its_warm_up_still_warms_up_and_ends_low():
    config = TrainConfig(max_steps=6, warmup_steps=1000, learning_rate=1.0)
    found = [learning_rate(config, step, step / 6) for step in range(6)]
    assert found[2] == 1.0
    assert found[-1] < 0.4


@pytest.mark.parametrize("shape", [(7, 7), (5, 13), (13, 5)])
def test_all_directions_of_an_orthogonalised_matrix_are_about_equally_long(shape):
    torch.manual_seed(1)
    matrices = orthogonalised(torch.randn(3, *shape), (3.4445, -4.775, 2.0315), 5)
    assert matrices.shape == (3, *shape)
    lengths = torch.linalg.svdvals(matrices)
    assert ((lengths > 0.3) & (lengths < 1.3)).all()


def test_muon_is_pytorchs_within_bfloat16():
    torch.manual_seed(0)
    start = [torch.randn(8, 24), torch.randn(8, 24), torch.randn(24, 8)]
    moved = []
    for kind in (Muon, torch.optim.Muon):
        weights = [torch.nn.Parameter(weight.clone()) for weight in start]
        optimizer = kind(weights, lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
        torch.manual_seed(1)
        for _ in range(4):
            for weight in weights:
                weight.grad = torch.randn_like(weight)
            optimizer.step()
        moved.append([weight.detach() for weight in weights])
    for ours, theirs, before in zip(*moved, start, strict=True):
        assert (ours - theirs).norm() < 0.05 * (theirs - before).norm()


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_weight_decay_pulls_at_matrices_only_and_every_weight_moves_once(name):
    model = GPT(ModelConfig(num_layers=1, embed_dim=8, num_heads=2, bias=True), 11)
    optimizers = build_optimizers(model, TrainConfig(optimizer=name))
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    moved = [weight for group in groups for weight in group["params"]]
    assert len(moved) == len(set(moved)) == len(list(model.parameters()))
    for group in groups:
        for weight in group["params"]:
            assert (group["weight_decay"] > 0) == (weight.ndim == 2)
