"""BENCHMARKS.md, from what the questions wrote with --json.

found.json of each question -> tables in Markdown
"""

import argparse
import json
from collections.abc import Iterator
from typing import Any, NoReturn

from benchmarks.attention import Case, verdict
from benchmarks.measuring import describe
from minigpt.errors import DATA, UserError
from minigpt.storage import write_text

HEAD = """# Benchmarks

Made by `python scripts/benchmark.py report`, from what its other questions wrote with `--json`; no
number is typed by hand. Everything in a row ran in turns; medians. Ratios say how many times as
fast ours is; read them before the absolute numbers, which depend on the machine.
What limits these speeds, and what was tried, is told in [docs/performance.md](docs/performance.md).
"""


# Whatever a file may hold that is not what a question wrote.
MISTAKES = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


def report(options: argparse.Namespace) -> dict[str, Any]:
    """BENCHMARKS.md from the files that other questions wrote with --json"""
    parts = [HEAD]
    for path in options.files:
        try:
            found = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
            lines = list(TABLES[found["question"]](found))
            title, facts = found["question"], describe(found["machine"])
        except MISTAKES as error:
            advice = "give files that benchmark.py wrote with --json"
            raise UserError(
                f"{path}: is no result of a benchmark ({error}); {advice}", DATA
            ) from None
        parts.append("\n".join([f"## {title}", "", f"{facts}.", "", *lines, ""]))
    write_text(options.out, "\n".join(parts))
    print(f"made {options.out}")
    return {}


def refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def sides(found: dict[str, Any]) -> Iterator[str]:
    """A row for each size, a column for each side: tokens a second."""
    names = sorted(found["cases"][0]["tokens a second"], key=ours_first)
    yield "Tokens a second, and how many times as fast ours is."
    yield ""
    yield f"| layers × width, context, batch | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for case in found["cases"]:
        size, rates = case["size"], case["tokens a second"]
        best = max(rate for name, rate in rates.items() if name.startswith("ours"))
        cells = [f"{size['layers']} × {size['width']}, {size['context']}, {size['batch']}"]
        for name in names:
            ratio = "" if name.startswith("ours") else f" ({best / rates[name]:.2f} ×)"
            cells.append(f"{rates[name]:,.0f}{ratio}")
        yield f"| {' | '.join(cells)} |"
    for case in found["cases"]:
        if "memory" in case:
            width, held = case["size"]["width"], case["memory"]
            yield ""
            yield f"Memory at its height, width {width}: " + ", ".join(
                f"{name} {held[name] / 2**20:,.0f} MiB" for name in names
            )
        if "share of bandwidth" in case:
            width = case["size"]["width"]
            yield ""
            yield (
                f"Width {width}: reading every weight once a token, at "
                f"{case['bytes a second'] / 1e9:.0f} GB a second, would take "
                f"{case['share of bandwidth']:.0%} of the time that a token takes."
            )


def ours_first(name: str) -> tuple[bool, str]:
    return not name.startswith("ours"), name


def attention_lines(found: dict[str, Any]) -> Iterator[str]:
    yield from verdict([Case(**case) for case in found["cases"]])


def milliseconds_lines(found: dict[str, Any]) -> Iterator[str]:
    yield "| | seconds |"
    yield "|---|---|"
    for name, value in found["milliseconds"].items():
        yield f"| {name} | {value / 1000:.2f} |"


def speedrun_lines(found: dict[str, Any]) -> Iterator[str]:
    seconds, losses = found["seconds"], found["losses"]
    yield (
        "From the start of the process to the last validation loss on tiny Shakespeare, character "
        "by character: ours by `configs/shakespeare_speedrun.yaml`, over the whole split; nanoGPT "
        "by its recipe for a CPU, over 20 of its batches."
    )
    yield ""
    yield "| | seconds | validation loss | |"
    yield "|---|---|---|---|"
    for name in sorted(seconds, key=ours_first):
        ratio = "" if name == "ours" else f"{seconds[name] / seconds['ours']:.1f} × as long"
        yield f"| {name} | {seconds[name]:.1f} | {losses[name]:.4f} | {ratio} |"


def inspect_lines(found: dict[str, Any]) -> Iterator[str]:
    times = found["milliseconds"]
    yield (
        "The attention of 4 × 4 heads on 100 texts of 96 tokens, and three scores of each head "
        "(previous token, duplicate token, induction), in seconds. TransformerLens: "
        "`run_with_cache` once a text, `detect_head` on its cache."
    )
    yield ""
    yield "| ours | TransformerLens |"
    yield "|---|---|"
    ours, theirs = times["ours"], times["TransformerLens"]
    yield f"| {ours / 1000:.3f} | {theirs / 1000:.3f} ({theirs / ours:.1f} ×) |"


def tokenize_lines(found: dict[str, Any]) -> Iterator[str]:
    yield (
        "Megabytes of text a second: ours reads, checks, encodes and writes a file; tiktoken's "
        "`encode_ordinary_batch` encodes lists in memory. And how many times as fast ours is."
    )
    yield ""
    yield "| text, vocabulary | ours | tiktoken |"
    yield "|---|---|---|"
    for case in found["cases"]:
        ours, theirs = (case["megabytes a second"][name] for name in ("ours", "tiktoken"))
        size = f"{case['megabytes']:,} MB, {case['vocab_size']:,}"
        yield f"| {size} | {ours:.1f} | {theirs:.1f} ({ours / theirs:.2f} ×) |"


def page_lines(found: dict[str, Any]) -> Iterator[str]:
    yield "| | |"
    yield "|---|---|"
    for name, value in found.items():
        if isinstance(value, float):
            yield f"| {name} | {value:.2f} |"


def cost_lines(found: dict[str, Any]) -> Iterator[str]:
    yield "| | |"
    yield "|---|---|"
    for name, value in found["milliseconds"].items():
        yield f"| {name} | {value:.4g} ms |"
    for name, share in found["shares"].items():
        yield f"| {name} | {share:.2%} |"


TABLES = {
    "attention": attention_lines,
    "train": sides,
    "generate": sides,
    "inspect": inspect_lines,
    "startup": milliseconds_lines,
    "speedrun": speedrun_lines,
    "tokenize": tokenize_lines,
    "explorer": page_lines,
    "save": cost_lines,
}
