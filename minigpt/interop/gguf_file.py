"""A run as a GGUF file, which llama.cpp runs.

llama.cpp's GPT-2 has learned positions and the tanh form of GELU. Its tokenizers are byte pairs
behind one of its own ways to cut a text, among them GPT-2's; with single characters or bytes no
way to cut makes a difference. Source: the GGUF specification and the `gguf` package.

run -> FILE.gguf
"""

from pathlib import Path

import numpy as np
from torch import Tensor

from minigpt import storage
from minigpt.checkpoint import Run
from minigpt.errors import CONFIG, UserError
from minigpt.extras import required
from minigpt.interop.complete import complete
from minigpt.interop.outgoing import require_gpt2, require_new
from minigpt.interop.tokenizers import merges, names, special_ids, spelled
from minigpt.model import GPT
from minigpt.tokenizer import GPT2, Tokenizer

NEVER = (b"\xff", b"\xff")  # bytes that are in no text
OF_BLOCK = {
    "attn_norm": "attention_norm",
    "attn_output": "attention.out_proj",
    "ffn_norm": "feed_forward_norm",
    "ffn_up": "feed_forward.expand",
    "ffn_down": "feed_forward.contract",
}


def export_gguf(run: Run, path: Path) -> str:
    """Writes the file, whole or not at all; -> a line to print. Raises UserError."""
    config = require_gpt2(run, "llama.cpp's GPT-2")
    if config.activation != "gelu_tanh":
        message = f"{run.run_dir}: model.activation is {config.activation}"
        raise UserError(f"{message}; llama.cpp's GPT-2 has gelu_tanh; train with that", CONFIG)
    require_known_cuts(run.tokenizer)
    gguf = required("gguf", "export", str(path), "GGUF")
    require_new(path)
    with storage.open_new(path) as file:
        temporary = Path(file.name)  # the package writes to a name, not to an open file
        writer = gguf.GGUFWriter(temporary, "gpt2")
        describe(writer, gguf, run)
        for name, tensor in tensors(run.model).items():
            writer.add_tensor(name, np.ascontiguousarray(tensor.numpy()))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        file.seek(0, 2)
    return f"{path}: step {run.step:,} of {run.run_dir}; run it with llama-cli -m {path}"


def require_known_cuts(tokenizer: Tokenizer) -> None:
    if tokenizer.kind not in ("char", "byte") and tokenizer.pattern != GPT2:
        message = f"data.tokenizer: {tokenizer.kind} cuts texts in a way that llama.cpp can't"
        raise UserError(f"{message}; allowed: char, byte, gpt2; train with one of them", CONFIG)


def describe(writer, gguf, run: Run) -> None:  # type: ignore[no-untyped-def]
    """The model's sizes and the tokenizer, under the names of the specification."""
    config, tokenizer = run.config.model, run.tokenizer
    writer.add_name(run.run_dir.resolve().name)
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.embed_dim)
    writer.add_block_count(config.num_layers)
    writer.add_feed_forward_length(config.feed_forward_dim)
    writer.add_head_count(config.num_heads)
    writer.add_layer_norm_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    special, end = special_ids(tokenizer), end_id(tokenizer)
    kinds = (gguf.TokenType.NORMAL, gguf.TokenType.CONTROL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(names(tokenizer))
    writer.add_token_types([kinds[id in special] for id in range(tokenizer.vocab_size)])
    writer.add_token_merges(merge_lines(tokenizer))
    writer.add_bos_token_id(end)
    writer.add_eos_token_id(end)
    writer.add_add_bos_token(False)


def end_id(tokenizer: Tokenizer) -> int:
    """The token after which llama.cpp stops, which it must have; --ignore-eos goes on."""
    return next(iter(special_ids(tokenizer)), 0 if tokenizer.kind == "byte" else tokenizer.start_id)


def merge_lines(tokenizer: Tokenizer) -> list[str]:
    """Pairs as llama.cpp reads them; it puts longer characters together byte by byte."""
    pairs = merges(tokenizer)
    if tokenizer.kind == "char":
        grown = {
            (token[:at], token[at : at + 1]): None
            for token in tokenizer.tokens
            for at in range(1, len(token))
        }
        pairs = list(grown)
    pairs = pairs or [NEVER]  # llama.cpp wants a merge
    return [f"{spelled(first)} {spelled(second)}" for first, second in pairs]


def tensors(model: GPT) -> dict[str, Tensor]:
    """Weights by llama.cpp's names; it wants every bias."""
    ours = complete(model)
    found = {
        "token_embd.weight": ours["token_embedding.weight"],
        "position_embd.weight": ours["position_embedding.weight"],
        "output_norm.weight": ours["final_norm.weight"],
        "output_norm.bias": ours["final_norm.bias"],
    }
    if not model.config.tie_embeddings:
        found["output.weight"] = ours["head.weight"]
    for layer in range(model.config.num_layers):
        for kind in ("weight", "bias"):
            for theirs, name in OF_BLOCK.items():
                found[f"blk.{layer}.{theirs}.{kind}"] = ours[f"blocks.{layer}.{name}.{kind}"]
            found[f"blk.{layer}.attn_qkv.{kind}"] = joined(ours, layer, kind)
    return found


def joined(ours: dict[str, Tensor], layer: int, kind: str) -> Tensor:
    import torch

    parts = ("W_query", "W_key", "W_value")
    return torch.cat([ours[f"blocks.{layer}.attention.{part}.{kind}"] for part in parts])
