"""A step of training, ours and others'."""

import argparse
from pathlib import Path
from typing import Any

from benchmarks.measuring import Call, describe, machine, milliseconds
from benchmarks.peers import QUICK, VOCABULARY, Size, others, our_model, ratios
from benchmarks.sides import Side

TRAINED = (Size("4x128", 4, 4, 128, 64, 64), Size("6x384", 6, 6, 384, 256, 16))


def train(options: argparse.Namespace) -> dict[str, Any]:
    """a step of training: ours in two precisions, nanoGPT's, Hugging Face's; tokens a second"""
    import torch

    torch.set_num_threads(options.threads)
    print(f"{describe(machine())}\n\nin brackets: how many times as fast our faster one is")
    cases = []
    for size in (QUICK,) if options.quick else TRAINED:
        peers = others(size, options.nanogpt)
        sides = {
            f"ours {precision}": Side(options.threads, our_step, size, precision)
            for precision in ("float32", "bfloat16")
        }
        for name in peers:
            sides[name] = Side(options.threads, plain_step, size, name, options.nanogpt)
        times = milliseconds(dict(sides), 0.2 if options.quick else options.seconds, by_wall=True)
        case = ratios(size, size.batch * size.context, times)
        case["memory"] = {name: side.close() for name, side in sides.items()}
        print(
            "".join(f" | {name} {held / 2**20:,.0f} MiB" for name, held in case["memory"].items())
        )
        cases.append(case)
    return {"machine": machine(), "cases": cases}


def nanogpt_loss(model: Any, x: Any, y: Any) -> Any:
    return model(x, y)[1]


def transformers_loss(model: Any, x: Any, y: Any) -> Any:
    from minigpt.loss import next_token_loss

    return next_token_loss(model(x).logits, y)


LOSSES = {"nanoGPT": nanogpt_loss, "transformers": transformers_loss}


def rows(size: Size) -> tuple[Any, Any]:
    import torch

    ids = torch.randint(VOCABULARY, (size.batch, size.context + 1))
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def our_step(size: Size, precision_name: str) -> Call:
    """One step as the trainer takes it."""
    import torch

    from minigpt.config import TrainConfig
    from minigpt.device import PRECISIONS, autocast, keep_memory
    from minigpt.loss import next_token_loss
    from minigpt.optim import build_optimizers

    keep_memory()
    model, precision = our_model(size), PRECISIONS[precision_name]
    if precision != torch.float32:
        model.write_out_attention()
    optimizers = build_optimizers(model, TrainConfig(optimizer="adamw"), precision)
    x, y = rows(size)

    def step() -> None:
        with autocast(x.device, precision):
            logits = model(x)
        next_token_loss(logits.float(), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    return step


def plain_step(size: Size, name: str, nanogpt: Path | None) -> Call:
    """One step as nanoGPT takes it on a CPU: float32, AdamW, clipped gradients."""
    import torch

    model, loss_of = others(size, nanogpt)[name], LOSSES[name]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x, y = rows(size)

    def step() -> None:
        loss_of(model, x, y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step
