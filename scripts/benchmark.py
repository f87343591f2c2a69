"""Measures minigpt against itself and others: python scripts/benchmark.py attention [--quick]

One subcommand for each question. Everything that is compared runs in the same process, in turns,
so that a busy machine slows all of it alike; read the ratios before the milliseconds.
"""

import argparse
import itertools
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from minigpt.errors import run_command
from minigpt.storage import write_json

Call = Callable[[], object]

# ------------------------------------------------------------------------------ measuring


def milliseconds(calls: dict[str, Call], seconds: float) -> dict[str, float]:
    """The median time of each call; they take turns, at least five each, for about `seconds`."""
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[next(iter(calls))]) < 5:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(1000 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def machine() -> dict[str, Any]:
    import torch

    cpu_info = Path("/proc/cpuinfo")
    lines = cpu_info.read_text(encoding="utf-8").splitlines() if cpu_info.exists() else []
    models = [line.split(": ", 1)[1] for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def describe(facts: dict[str, Any]) -> str:
    threads = f"{facts['threads']} threads on {facts['cores']} cores"
    return f"{facts['processor']}, {threads}, torch {facts['torch']}, Python {facts['python']}"


# ------------------------------------------------------------------------------ attention

TOKENS_AND_BATCH = 2**19  # numbers in a batch: B·T·E, so that a case takes a few milliseconds
LENGTHS, HEADS, WIDTHS = (16, 64, 256, 512, 1024), (1, 4, 8), (64, 128, 384)


@dataclass(frozen=True)
class Case:
    """One size, and how long each kind of attention takes with it, in milliseconds."""

    tokens: int
    heads: int
    width: int
    batch: int
    forward: dict[str, float]
    both: dict[str, float]


def attention(options: argparse.Namespace) -> dict[str, Any]:
    """Heads in series, heads at once, torch.nn.MultiheadAttention and a bare fused kernel."""
    import torch

    torch.manual_seed(0)
    facts = machine()
    print(describe(facts))
    print("times of heads in series and of others, as multiples of MultiHeadAttention's own\n")
    print("                               |        forward           |    forward and backward")
    titles = "ours ms  series  torch   bare"
    print(f"tokens  heads  width    batch  | {titles} | {titles}")
    sizes = [(256, 4, 128), (16, 4, 128)] if options.quick else all_sizes()
    cases = []
    for tokens, heads, width in sizes:
        cases.append(measure(tokens, heads, width, seconds=0.1 if options.quick else 0.55))
        print(row(cases[-1]))
    print("\n" + "\n".join(verdict(cases)))
    return {"machine": facts, "cases": [asdict(case) for case in cases]}


def all_sizes() -> Iterator[tuple[int, int, int]]:
    for width, heads, tokens in itertools.product(WIDTHS, HEADS, LENGTHS):
        yield tokens, heads, width


def measure(tokens: int, heads: int, width: int, seconds: float) -> Case:
    import torch

    batch = max(1, TOKENS_AND_BATCH // 2 // (tokens * width))
    inputs = torch.randn(batch, tokens, width, requires_grad=True)
    functions = same_functions(tokens, heads, width)
    expected = functions["ours"](inputs)
    for function in functions.values():
        torch.testing.assert_close(function(inputs), expected, atol=1e-5, rtol=1e-4)

    def forward(function: Callable) -> Call:
        return torch.no_grad()(lambda: function(inputs))

    def both(function: Callable) -> Call:
        return lambda: function(inputs).backward(torch.ones_like(inputs))

    results = [
        milliseconds({name: kind(function) for name, function in functions.items()}, seconds)
        for kind in (forward, both)
    ]
    return Case(tokens, heads, width, batch, *results)


def same_functions(tokens: int, heads: int, width: int) -> dict[str, Callable]:
    """Four modules with the same weights, (B, T, E) -> (B, T, E)."""
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn

    from minigpt.attention import MultiHeadAttention, MultiHeadAttentionWrapper

    in_series = MultiHeadAttentionWrapper(width, width // heads, heads)
    ours = MultiHeadAttention.from_heads(in_series)
    projections = (ours.W_query, ours.W_key, ours.W_value)
    stacked = torch.cat([projection.weight for projection in projections])
    torchs_own = nn.MultiheadAttention(width, heads, bias=False, batch_first=True)
    torchs_own.load_state_dict(
        {"in_proj_weight": stacked, "out_proj.weight": ours.out_proj.weight}
    )
    mask = nn.Transformer.generate_square_subsequent_mask(tokens)
    one_projection = nn.Linear(width, 3 * width, bias=False)
    one_projection.load_state_dict({"weight": stacked})

    def torchs(inputs: Tensor) -> Tensor:
        return torchs_own(inputs, inputs, inputs, attn_mask=mask, is_causal=True, need_weights=False)[0]

    def bare(inputs: Tensor) -> Tensor:
        parts = one_projection(inputs).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        context = F.scaled_dot_product_attention(*parts, is_causal=True)
        return ours.out_proj(context.transpose(1, 2).flatten(2))

    return {"ours": ours, "series": in_series, "torch": torchs, "bare": bare}


def row(case: Case) -> str:
    numbers = f"{case.tokens:6}  {case.heads:5}  {case.width:5}  {case.batch:7}  "
    for times in (case.forward, case.both):
        ours, *others = times.values()
        numbers += f"| {ours:7.2f} " + " ".join(f"{other / ours:6.2f}" for other in others) + "  "
    return numbers


def verdict(cases: list[Case]) -> Iterator[str]:
    """Two sentences on the whole table."""
    several = [case for case in cases if case.heads >= 4]
    leads = [t["series"] / t["ours"] for c in several for t in (c.forward, c.both)]
    yield (
        f"with 4 heads or more, at once is faster than in series in {sum(x > 1 for x in leads)} of "
        f"{len(leads)} cases: {min(leads):.2f} to {max(leads):.2f} times"
    )
    long = [case for case in cases if case.tokens >= 256]
    behind = [t["ours"] / min(t.values()) for c in long for t in (c.forward, c.both)]
    yield (
        f"from 256 tokens up, ours takes {statistics.median(behind):.2f} times the best of all, "
        f"{max(behind):.2f} at worst"
    )


# ------------------------------------------------------------------------------ command line

QUESTIONS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {"attention": attention}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="question", required=True, metavar="QUESTION")
    for name, function in QUESTIONS.items():
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        command.add_argument("--quick", action="store_true", help="few sizes, in a second or two")
        command.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here")
    options = parser.parse_args(arguments)
    results = QUESTIONS[options.question](options)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    run_command(main)
