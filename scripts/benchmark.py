"""Compares ways to do the same thing, side by side: python scripts/benchmark.py attention [--quick]"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from minigpt.errors import UserError, run_command

LENGTHS, HEADS, WIDTHS = (16, 64, 256, 512, 1024), (1, 4, 8), (64, 128, 384)
QUICK = ((16, 256), (1, 4), (128,))
NUMBERS_PER_CASE = 2**18  # of the inputs: batch · length · width, about 1 MiB
REFERENCE = "batched"


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"command line: {message}; see --help")


def main(arguments: list[str]) -> None:
    parser = Parser(description="Times ways to do the same thing, in turn, in one run; medians.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("attention", help="heads in series, at once, and PyTorch's own")
    one.add_argument("--quick", action="store_true", help="fewer sizes")
    one.add_argument("--rounds", type=int, default=9, help="times each way is timed (default 9)")
    one.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    asked = parser.parse_args(arguments)
    rows = attention(QUICK if asked.quick else (LENGTHS, HEADS, WIDTHS), max(asked.rounds, 1))
    if asked.json:
        from minigpt.storage import write_json

        write_json(asked.json, {"machine": machine(), "attention": rows})
        print(f"made {asked.json}")


def attention(sizes: tuple, rounds: int) -> list[dict]:
    """Times relative to the batched class; below 1.00 is faster than it."""
    print(f"{machine()}\nforward and backward; how long others take over the batched class\n")
    rows: list[dict] = []
    for length in sizes[0]:
        for width in sizes[2]:
            for num_heads in sizes[1]:
                times = case(length, width, num_heads, rounds)
                if not rows:
                    print("tokens  width  heads" + "".join(f"{name:>22}" for name in times))
                ratios = {name: seconds / times[REFERENCE] for name, seconds in times.items()}
                numbers = "".join(
                    f"{times[name] * 1000:19.2f} ms" if name == REFERENCE else f"{ratio:21.2f}×"
                    for name, ratio in ratios.items()
                )
                print(f"{length:6} {width:6} {num_heads:6}{numbers}", flush=True)
                rows.append({"tokens": length, "width": width, "heads": num_heads, **times})
    return rows


def case(length: int, width: int, num_heads: int, rounds: int) -> dict[str, float]:
    """Median seconds of one forward and backward pass of each way."""
    import torch

    batch = max(NUMBERS_PER_CASE // (length * width), 1)
    inputs = torch.randn(batch, length, width)
    return interleaved(
        {name: step_of(layer, inputs) for name, layer in ways(length, width, num_heads).items()},
        rounds,
    )


def ways(length: int, width: int, num_heads: int) -> dict[str, Callable]:
    """The same function of (B, T, E), computed in four ways."""
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import scaled_dot_product_attention

    from minigpt.attention import MultiHeadAttention, MultiHeadAttentionWrapper

    shape = (width, width // num_heads, num_heads)
    theirs = nn.MultiheadAttention(width, num_heads, bias=False, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(length)
    joined, out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def multihead(x: Tensor) -> Tensor:
        return theirs(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]

    def plain(x: Tensor) -> Tensor:
        parts = joined(x).view(*x.shape[:2], 3, num_heads, -1).permute(2, 0, 3, 1, 4)
        context = scaled_dot_product_attention(*parts, is_causal=True)
        return out(context.transpose(1, 2).reshape(x.shape))

    torch.manual_seed(0)
    return {
        "batched": MultiHeadAttention(*shape),
        "serial": MultiHeadAttentionWrapper(*shape),
        "nn.MultiheadAttention": multihead,
        "sdpa, one projection": plain,
    }


def step_of(layer: Callable, inputs: Any) -> Callable[[], None]:
    inputs = inputs.clone().requires_grad_()

    def step() -> None:
        layer(inputs).sum().backward()

    return step


def interleaved(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Median seconds of each step; all take turns, so a noisy moment meets all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds + 2):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            if number >= 2:  # the first two warm up
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(found) for name, found in seconds.items()}


def machine() -> str:
    import torch

    return (
        f"{platform.machine()}, {torch.get_num_threads()} threads, "
        f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    )


if __name__ == "__main__":
    run_command(main)
