"""Dropout: the right share is dropped, the rest makes up for it, and a seed repeats it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minigpt.dropout import Dropout, dropped

SHARES = st.floats(0, 1, exclude_max=True)
SIZES = st.lists(st.integers(0, 7), max_size=4)


@given(SHARES, SIZES, st.sampled_from([torch.float32, torch.bfloat16]), st.integers(0, 2**60))
def test_a_number_is_dropped_or_scaled_and_so_is_its_gradient(share, size, dtype, seed):
    torch.manual_seed(seed)
    x = torch.ones(size, dtype=dtype, requires_grad=True)
    found = dropped(x, share)
    assert (found.shape, found.dtype) == (x.shape, dtype)
    gone = min(round(share * 2**16), 2**16 - 1) / 2**16
    scaled = torch.tensor(1 / (1 - gone), dtype=dtype)
    assert ((found == 0) | (found == scaled)).all()
    found.sum().backward()
    assert torch.equal(x.grad, found.detach())
    torch.manual_seed(seed)
    assert torch.equal(dropped(x, share), found)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9])
def test_the_share_is_dropped_anywhere_and_the_mean_stays(share):
    torch.manual_seed(0)
    x = torch.full((1000, 4, 250), 3.0)
    found = dropped(x, share)
    assert (found == 0).float().mean() == pytest.approx(share, abs=0.002)
    places = (found == 0).float().mean(dim=(0, 1))  # each of the four of a draw, too
    assert (places - share).abs().max() < 0.04
    for place in range(4):
        here = (found.flatten()[place::4] == 0).float().mean()
        assert here == pytest.approx(share, abs=0.003)
    assert found.mean() == pytest.approx(3.0, abs=0.03)


def test_nothing_is_dropped_when_the_model_is_only_asked():
    x = torch.randn(5, 7)
    layer = Dropout(0.5)
    assert torch.equal(layer.eval()(x), x)
    assert not torch.equal(layer.train()(x), x)
