"""The model is a GPT: GPT-2's numbers from GPT-2's weights, no look ahead, any setting."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.cache import KVCache
from minigpt.config import ModelConfig
from minigpt.model import GPT

SMALL = {"num_layers": 2, "num_heads": 2, "embed_dim": 12, "context_length": 11}
GPT2 = {"positions": "learned", "activation": "gelu_tanh", "bias": True, "qk_norm": False}
GPT2 |= {"feed_forward_multiple": 4}
CONFIGS = st.builds(
    ModelConfig,
    num_layers=st.integers(1, 3),
    num_heads=st.sampled_from([1, 3]),
    embed_dim=st.sampled_from([6, 18]),
    context_length=st.sampled_from([7, 11]),
    feed_forward_multiple=st.sampled_from([1, 2.5, 4]),
    activation=st.sampled_from(["gelu", "gelu_tanh", "relu2"]),
    positions=st.sampled_from(["learned", "rotary"]),
    bias=st.booleans(),
    tie_embeddings=st.booleans(),
    qk_norm=st.booleans(),
)


@pytest.mark.parametrize("tied", [True, False])
def test_gpt2_itself_can_be_expressed(tied):
    transformers = pytest.importorskip("transformers", reason="GPT-2's authority is not installed")
    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=31,
            n_positions=11,
            n_embd=12,
            n_layer=2,
            n_head=2,
            tie_word_embeddings=tied,
        )
    ).eval()
    for weight in theirs.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    ours = GPT(ModelConfig(**SMALL, **GPT2, tie_embeddings=tied), 31).eval()
    ours.load_state_dict(renamed(theirs.state_dict()))
    ids = torch.randint(31, (3, 11))
    torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=0, atol=1e-5)


OUR_NAMES = {
    "transformer.wte.": "token_embedding.",
    "transformer.wpe.": "position_embedding.",
    "transformer.ln_f.": "final_norm.",
    "lm_head.": "head.",
    "transformer.h.": "blocks.",
    "ln_1.": "attention_norm.",
    "ln_2.": "feed_forward_norm.",
    "attn.c_proj.": "attention.out_proj.",
    "mlp.c_fc.": "feed_forward.expand.",
    "mlp.c_proj.": "feed_forward.contract.",
}


def renamed(weights):
    """GPT-2's weights by our names; its matrices are transposed, three of them joined."""
    found = {}
    for name, weight in weights.items():
        for theirs, ours in OUR_NAMES.items():
            name = name.replace(theirs, ours)
        if ("attn." in name or "out_proj" in name or "feed_forward." in name) and weight.ndim == 2:
            weight = weight.T
        if "attn.c_attn." in name:
            for ours, part in zip(("W_query", "W_key", "W_value"), weight.chunk(3), strict=True):
                found[name.replace("attn.c_attn", f"attention.{ours}")] = part
        else:
            found[name] = weight
    return found


@given(CONFIGS)
@settings(deadline=None, max_examples=40)
def test_every_setting_learns_and_counts_its_parameters(config):
    model = GPT(config, 17)
    assert model.num_parameters == config.num_parameters(17)
    ids = torch.randint(17, (2, 7))
    model(ids).square().mean().backward()
    assert all(weight.grad is not None for weight in model.parameters())


@given(CONFIGS, st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_a_cache_changes_no_score(config, chunk):
    model = GPT(config, 17).double().eval()
    ids = torch.randint(17, (2, config.context_length))
    cache = KVCache(config.num_layers, config.context_length)
    parts = [model(part, cache) for part in ids.split(chunk, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(ids))


@given(CONFIGS, st.integers(0, 6))
@settings(deadline=None, max_examples=40)
def test_no_score_depends_on_a_later_token(config, place):
    model = GPT(config, 17).double().eval()
    ids = torch.randint(17, (1, 7))
    changed = ids.clone()
    changed[0, place] = (ids[0, place] + 1) % 17
    same = (model(ids) - model(changed)).abs().amax(dim=(0, 2)) < 1e-12
    assert same[:place].all()
    assert not same[place]


def test_a_tied_head_is_the_embedding():
    tied = GPT(ModelConfig(**SMALL), 17)
    assert tied.head.weight is tied.token_embedding.weight
    untied = GPT(ModelConfig(**SMALL, tie_embeddings=False), 17)
    assert untied.head.weight is not untied.token_embedding.weight


def test_a_text_longer_than_the_context_is_told_with_numbers():
    with pytest.raises(ValueError, match="12 tokens do not fit the context of 11"):
        GPT(ModelConfig(**SMALL), 17)(torch.zeros(1, 12, dtype=torch.long))


def test_an_untrained_model_expects_every_token_alike():
    logits = GPT(ModelConfig(), 300)(torch.randint(300, (2, 64)))
    surprise = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.randint(300, (128,)))
    assert abs(surprise.item() - torch.tensor(300.0).log().item()) < 0.1
