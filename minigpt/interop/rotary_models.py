"""Runs with rotary positions as two architectures that transformers knows.

GPT-NeoX is ours without `qk_norm`: layer norms, rotary positions by halves, any activation.
Apertus has `qk_norm`, no biases, and root-mean-square norms. A layer norm is such a norm of a
vector whose mean was taken off; so everything that adds to the stream is given mean zero, the
stream then always has mean zero, and both norms agree. Our `qk_norm` adds a smaller number under
its root than Apertus does; queries and keys that are larger by the right factor make up for it.

GPT -> config.json, {name: tensor}
"""

from typing import Any

import torch
from torch import Tensor

from minigpt.config import ModelConfig
from minigpt.interop.complete import complete
from minigpt.interop.gpt2 import THEIR_ACTIVATION
from minigpt.model import GPT

EPSILON = 1e-5  # under the root of our layer norms, and of all norms of Apertus
OUR_QK_EPSILON = torch.finfo(torch.float32).eps


def obstacles(config: ModelConfig) -> list[str]:
    """The settings that neither of the two can express."""
    found = []
    if config.positions != "rotary":
        found.append(f"model.positions={config.positions} with model.qk_norm=true")
    elif config.qk_norm and config.bias:
        found.append("model.bias=true with model.qk_norm=true")
    return found


def common_config(config: ModelConfig, vocab_size: int) -> dict[str, Any]:
    return {
        "vocab_size": vocab_size,
        "hidden_size": config.embed_dim,
        "intermediate_size": config.feed_forward_dim,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "hidden_act": THEIR_ACTIVATION[config.activation],
        "max_position_embeddings": config.context_length,
        "attention_dropout": config.dropout,
    }


# ------------------------------------------------------------------------------ GPT-NeoX


def neox_config(config: ModelConfig, vocab_size: int) -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 1.0}
    return common_config(config, vocab_size) | {
        "model_type": "gpt_neox",
        "architectures": ["GPTNeoXForCausalLM"],
        "layer_norm_eps": EPSILON,
        "hidden_dropout": config.dropout,
        "use_parallel_residual": False,
        "attention_bias": True,
        "tie_word_embeddings": config.tie_embeddings,
        "rope_parameters": rope,
        "rotary_pct": 1.0,
        "rotary_emb_base": 10_000,
    }


def to_neox(model: GPT) -> dict[str, Tensor]:
    """A model's weights as GPTNeoXForCausalLM names them: queries, keys, values head by head."""
    ours, config = complete(model), model.config
    names = {
        "input_layernorm": "attention_norm",
        "attention.dense": "attention.out_proj",
        "post_attention_layernorm": "feed_forward_norm",
        "mlp.dense_h_to_4h": "feed_forward.expand",
        "mlp.dense_4h_to_h": "feed_forward.contract",
    }
    found = {"gpt_neox.embed_in.weight": ours["token_embedding.weight"]}
    for kind in ("weight", "bias"):
        found[f"gpt_neox.final_layer_norm.{kind}"] = ours[f"final_norm.{kind}"]
        for layer in range(config.num_layers):
            block = f"gpt_neox.layers.{layer}"
            for theirs, name in names.items():
                found[f"{block}.{theirs}.{kind}"] = ours[f"blocks.{layer}.{name}.{kind}"]
            parts = [
                ours[f"blocks.{layer}.attention.{part}.{kind}"].unflatten(0, (config.num_heads, -1))
                for part in ("W_query", "W_key", "W_value")
            ]
            found[f"{block}.attention.query_key_value.{kind}"] = torch.cat(parts, 1).flatten(0, 1)
    if not config.tie_embeddings:
        found["embed_out.weight"] = ours["head.weight"]
    return {name: tensor.contiguous() for name, tensor in found.items()}


# ------------------------------------------------------------------------------ Apertus


def apertus_config(config: ModelConfig, vocab_size: int) -> dict[str, Any]:
    return common_config(config, vocab_size) | {
        "model_type": "apertus",
        "architectures": ["ApertusForCausalLM"],
        "num_key_value_heads": config.num_heads,
        "rms_norm_eps": EPSILON,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
        "rope_theta": 10_000.0,
        "rope_scaling": None,
    }


def to_apertus(model: GPT) -> dict[str, Tensor]:
    """A model's weights as ApertusForCausalLM names them; computed in float64.

    What reads tokens has mean zero and what scores them has not, so they are two matrices.
    """
    ours = {name: tensor.double() for name, tensor in complete(model).items()}
    longer = (EPSILON / OUR_QK_EPSILON) ** 0.5
    found = {
        "model.embed_tokens.weight": centred(ours["token_embedding.weight"], 1),
        "model.norm.weight": ours["final_norm.weight"],
        "lm_head.weight": ours.get("head.weight", ours["token_embedding.weight"]),
    }
    for layer in range(model.config.num_layers):
        block, our = f"model.layers.{layer}", f"blocks.{layer}"
        attention, feed_forward = f"{our}.attention", f"{our}.feed_forward"
        found |= {
            f"{block}.attention_layernorm.weight": ours[f"{our}.attention_norm.weight"],
            f"{block}.self_attn.q_proj.weight": ours[f"{attention}.W_query.weight"] * longer,
            f"{block}.self_attn.k_proj.weight": ours[f"{attention}.W_key.weight"] * longer,
            f"{block}.self_attn.v_proj.weight": ours[f"{attention}.W_value.weight"],
            f"{block}.self_attn.q_norm.weight": ours[f"{attention}.query_norm.weight"],
            f"{block}.self_attn.k_norm.weight": ours[f"{attention}.key_norm.weight"],
            f"{block}.self_attn.o_proj.weight": centred(ours[f"{attention}.out_proj.weight"], 0),
            f"{block}.feedforward_layernorm.weight": ours[f"{our}.feed_forward_norm.weight"],
            f"{block}.mlp.up_proj.weight": ours[f"{feed_forward}.expand.weight"],
            f"{block}.mlp.down_proj.weight": centred(ours[f"{feed_forward}.contract.weight"], 0),
        }
    return {name: tensor.float().contiguous() for name, tensor in found.items()}


def centred(matrix: Tensor, dim: int) -> Tensor:
    """The same matrix, except that what it adds to the stream has mean zero."""
    return matrix - matrix.mean(dim, keepdim=True)
