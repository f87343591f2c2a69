"""Ways to compute multi-head attention, forward and backward."""

import argparse
import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.measuring import Call, describe, machine, milliseconds

LENGTHS, HEADS, WIDTHS = (16, 64, 256, 512, 1024), (1, 4, 8), (64, 128, 384)
QUICK_LENGTHS, QUICK_HEADS, QUICK_WIDTHS = (16, 256), (1, 4), (128,)
NUMBERS_PER_BATCH = 2**17  # B·T·E: a case takes a few milliseconds
SECONDS, QUICK_SECONDS = 0.3, 0.05  # for each case and direction


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
    """heads in series, heads at once, PyTorch's module, PyTorch's bare fused kernel"""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    facts = machine()
    print(f"{describe(facts)}\n\n{HEADING}")
    cases = []
    for tokens, heads, width in sizes(options.quick):
        cases.append(measure(tokens, heads, width, QUICK_SECONDS if options.quick else SECONDS))
        print(row(cases[-1]), flush=True)
    print("\n" + "\n".join(verdict(cases)))
    return {"machine": facts, "cases": [asdict(case) for case in cases]}


def sizes(quick: bool) -> Iterator[tuple[int, int, int]]:
    """Tokens, heads, width of each case."""
    lengths: tuple[int, ...] = QUICK_LENGTHS if quick else LENGTHS
    heads: tuple[int, ...] = QUICK_HEADS if quick else HEADS
    widths: tuple[int, ...] = QUICK_WIDTHS if quick else WIDTHS
    for width, num_heads, length in itertools.product(widths, heads, lengths):
        yield length, num_heads, width


def measure(tokens: int, heads: int, width: int, seconds: float) -> Case:
    import torch

    batch = max(1, NUMBERS_PER_BATCH // (tokens * width))
    inputs = torch.randn(batch, tokens, width, requires_grad=True)
    ways = same_functions(tokens, heads, width)

    def forward(way: Callable) -> Call:
        return torch.no_grad()(lambda: way(inputs))

    def both(way: Callable) -> Call:
        return lambda: way(inputs).backward(torch.ones_like(inputs))

    for way in ways.values():
        torch.testing.assert_close(forward(way)(), forward(ways["ours"])(), atol=1e-5, rtol=1e-4)
    times = [
        milliseconds({name: kind(way) for name, way in ways.items()}, seconds)
        for kind in (forward, both)
    ]
    return Case(tokens, heads, width, batch, *times)


def same_functions(tokens: int, heads: int, width: int) -> dict[str, Callable]:
    """Four ways to compute the same function, with the same weights: (B, T, E) -> (B, T, E)."""
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn

    from minigpt.attention import MultiHeadAttention, MultiHeadAttentionWrapper

    in_series = MultiHeadAttentionWrapper(width, width // heads, heads)
    ours = MultiHeadAttention.from_heads(in_series)
    projections = (ours.W_query, ours.W_key, ours.W_value)
    stacked = torch.cat([projection.weight for projection in projections])
    torchs_own = nn.MultiheadAttention(width, heads, bias=False, batch_first=True).eval()
    torchs_own.load_state_dict({"in_proj_weight": stacked, "out_proj.weight": ours.out_proj.weight})
    mask = nn.Transformer.generate_square_subsequent_mask(tokens)
    one_projection = nn.Linear(width, 3 * width, bias=False)
    one_projection.load_state_dict({"weight": stacked})

    def torchs(inputs: Tensor) -> Tensor:
        three = (inputs, inputs, inputs)
        return torchs_own(*three, attn_mask=mask, is_causal=True, need_weights=False)[0]

    def bare(inputs: Tensor) -> Tensor:
        parts = one_projection(inputs).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        queries, keys, values = parts
        context = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return ours.out_proj(context.transpose(1, 2).flatten(2))

    return {"ours": ours, "series": in_series, "torch": torchs, "bare": bare}


HEADING = """\
ours: MultiHeadAttention, in milliseconds. The others take so many times as long:
series: MultiHeadAttentionWrapper, one head after the other
torch:  torch.nn.MultiheadAttention, without weights
bare:   one linear layer for all projections around scaled_dot_product_attention

                             |            forward            |     forward and backward
tokens  heads  width  batch  |    ours  series  torch   bare |    ours  series  torch   bare"""


def row(case: Case) -> str:
    line = f"{case.tokens:6}  {case.heads:5}  {case.width:5}  {case.batch:5}  "
    for ours, *others in (case.forward.values(), case.both.values()):
        line += f"| {ours:7.2f} " + "".join(f"{other / ours:7.2f}" for other in others) + " "
    return line


def verdict(cases: list[Case]) -> Iterator[str]:
    """The whole table in two lines."""
    several = [times for case in cases if case.heads >= 4 for times in (case.forward, case.both)]
    leads = [times["series"] / times["ours"] for times in several]
    yield (
        f"4 heads or more: ours is faster than heads in series in {sum(x > 1 for x in leads)} of "
        f"{len(leads)} cases, {min(leads):.2f} to {max(leads):.2f} times"
    )
    long = [times for case in cases if case.tokens >= 256 for times in (case.forward, case.both)]
    lags = [times["ours"] / min(times.values()) for times in long]
    yield (
        f"256 tokens or more: ours takes {statistics.median(lags):.2f} times as long as the best "
        f"of all, {max(lags):.2f} at worst"
    )
