"""Attention is what the lesson says it is: by hand, in series, at once, fused, with a cache."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.attention import (
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    SelfAttention,
    causal_weights,
)
from minigpt.cache import LayerCache
from minigpt.rotary import Rotary

DOUBLE = torch.float64
SHAPES = st.tuples(
    st.sampled_from([1, 2, 3, 5]),  # B
    st.sampled_from([1, 2, 7, 13]),  # T
    st.sampled_from([5, 11, 17]),  # E
    st.sampled_from([2, 4, 6]),  # D, even for rotary positions
    st.sampled_from([1, 2, 3]),  # H
)


def test_weights_worked_by_hand():
    """Scores 1·ln 2, 1·ln 3 and so on, times √4 / √4: softmax of ln 2, ln 3 is 2 : 3."""
    queries = torch.tensor([[2.0, 0, 0, 0], [2, 0, 0, 0], [0, 2, 0, 0]])
    keys = torch.zeros(3, 4)
    keys[:, 0] = torch.tensor([2.0, 3, 5]).log()
    keys[:, 1] = torch.tensor([1.0, 1, 2]).log()
    expected = torch.tensor([[1, 0, 0], [2 / 5, 3 / 5, 0], [1 / 4, 1 / 4, 2 / 4]])
    torch.testing.assert_close(causal_weights(queries, keys), expected)


def test_one_head_worked_by_hand():
    """Two words; the second looks at both with shares 1 : 3, and takes values 4 and 8."""
    head = SelfAttention(2, 1)
    head.W_query.weight.data = torch.tensor([[0.0, 1.0]])
    head.W_key.weight.data = torch.tensor([[0.0, math.log(3)]])
    head.W_value.weight.data = torch.tensor([[4.0, 4.0]])
    inputs = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    torch.testing.assert_close(head(inputs), torch.tensor([[4.0], [(4 + 3 * 8) / 4]]))


def test_the_dog_fetched_the_ball():
    """The lesson's example: 5 words, 2 heads of 3; each step by plain loops."""
    torch.manual_seed(0)
    inputs = torch.randn(5, 6, dtype=DOUBLE)
    layer = MultiHeadAttention(6, 3, 2).double().requires_grad_(False)
    queries, keys, values = (w(inputs) for w in (layer.W_query, layer.W_key, layer.W_value))
    assert layer.split_heads(queries).shape == (2, 5, 3)
    context = torch.zeros(5, 6, dtype=DOUBLE)
    for head in range(2):
        columns = slice(3 * head, 3 * head + 3)
        for t in range(5):
            scores = [
                math.exp(queries[t, columns] @ keys[s, columns] / math.sqrt(3))
                for s in range(t + 1)
            ]
            for s, score in enumerate(scores):
                context[t, columns] += score / sum(scores) * values[s, columns]
    torch.testing.assert_close(layer(inputs), layer.out_proj(context), rtol=0, atol=1e-12)
    assert layer.attention_weights(inputs).shape == (2, 5, 5)


@given(SHAPES)
@settings(deadline=None)
def test_in_series_is_at_once(shape):
    batch, length, width, head_dim, num_heads = shape
    wrapper = MultiHeadAttentionWrapper(width, head_dim, num_heads).double()
    batched = MultiHeadAttention.from_heads(wrapper)
    inputs = torch.randn(batch, length, width, dtype=DOUBLE)
    torch.testing.assert_close(batched(inputs), wrapper(inputs), rtol=0, atol=1e-12)
    torch.testing.assert_close(batched(inputs[0]), wrapper(inputs[0]), rtol=0, atol=1e-12)
    torch.testing.assert_close(batched(inputs)[0], batched(inputs[0]), rtol=0, atol=1e-12)


def layers(shape, **settings):
    _, length, width, head_dim, num_heads = shape
    rotary = Rotary(head_dim, length).double()
    plain = {"rotary": rotary, "qk_norm": True, "bias": True} | settings
    return MultiHeadAttention(width, head_dim, num_heads, **plain).double()


@given(SHAPES)
@settings(deadline=None)
def test_fused_is_explicit_and_so_are_their_gradients(shape):
    layer = layers(shape)
    inputs = torch.randn(shape[0], shape[1], shape[2], dtype=DOUBLE)
    found = []
    for fused in (True, False):
        layer.fused = fused
        layer.zero_grad()
        outputs = layer(inputs)
        outputs.square().sum().backward()
        found.append([outputs, *(weight.grad for weight in layer.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("fused", [True, False])
def test_dropout_takes_weights_away_while_training(fused):
    """All values are ones, so that a word's result is the sum of the weights that it has left."""
    attention = MultiHeadAttention(4, 4, num_heads=1, dropout=0.5, fused=fused, bias=False)
    with torch.no_grad():
        attention.W_value.weight.copy_(torch.eye(4))
        attention.out_proj.weight.copy_(torch.eye(4))
    ones = torch.ones(200, 1, 4)  # one word alone: its weight is 1
    left = attention(ones)
    assert set(left.unique().tolist()) == {0.0, 2.0}
    assert 0.35 < (left == 0).float().mean() < 0.65
    torch.testing.assert_close(attention.eval()(ones), ones)


@given(SHAPES, st.data())
@settings(deadline=None)
def test_no_word_sees_a_later_one(shape, data):
    batch, length, width, *_ = shape
    layer = layers(shape, fused=data.draw(st.booleans()))
    inputs = torch.randn(batch, length, width, dtype=DOUBLE)
    place = data.draw(st.integers(0, length - 1))
    changed = inputs.clone()
    changed[:, place] += 1
    same = (layer(inputs) - layer(changed)).abs().amax(dim=(0, 2)) < 1e-12
    assert same[:place].all()
    assert not same[place]


@given(SHAPES, st.integers(1, 5))
@settings(deadline=None)
def test_a_cache_changes_nothing(shape, chunk):
    batch, length, width, *_ = shape
    layer = layers(shape, rotary=Rotary(shape[3], length + 1).double())
    inputs = torch.randn(batch, length, width, dtype=DOUBLE)
    cache = LayerCache(length)
    parts = [layer(part, cache) for part in inputs.split(chunk, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), layer(inputs))
    with pytest.raises(ValueError, match=f"holds {length}"):
        layer(inputs[:, :1], cache)


@given(SHAPES)
@settings(deadline=None)
def test_weights_are_shares_of_the_past(shape):
    layer = layers(shape, dropout=0.5).train()
    weights = layer.attention_weights(torch.randn(*shape[:3], dtype=DOUBLE))
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert (weights.triu(1) == 0).all()


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_rotary_scores_depend_on_distance_alone(first, second, shift):
    torch.manual_seed(0)
    rotary = Rotary(6, 99).double()
    query, key = torch.randn(2, 1, 6, dtype=DOUBLE)
    here = rotary(query, first) @ rotary(key, second).mT
    there = rotary(query, first + shift) @ rotary(key, second + shift).mT
    torch.testing.assert_close(here, there, rtol=0, atol=1e-5)  # angles are float32


def test_odd_heads_cannot_be_turned():
    with pytest.raises(ValueError, match="even head_dim, got 3"):
        Rotary(3, 8)
