"""Measures minigpt against itself and others: python scripts/benchmark.py QUESTION [--quick]

One subcommand for each question. Everything that is compared runs in the same process, in turns,
so that a busy machine slows all of it alike; read the ratios before the milliseconds.
"""

import argparse
import contextlib
import itertools
import os
import platform
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from minigpt.errors import CONFIG, DATA, UserError, run_command
from minigpt.options import Parser
from minigpt.saved_runs import newest_run
from minigpt.storage import write_json

Call = Callable[[], object]

# ------------------------------------------------------------------------------ measuring


def milliseconds(calls: dict[str, Call], seconds: float) -> dict[str, float]:
    """The median time of each call; they take turns, at least five each, for about `seconds`.

    One thread is timed by the processor's clock, which stands still while other programs run.
    """
    import torch

    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = clock() + seconds
    for turn in itertools.count():
        if turn >= 5 and clock() > end:
            break
        for name, call in calls.items():
            start = clock()
            call()
            times[name].append(1000 * (clock() - start))
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
    threads = f"threads: {facts['threads']} on {facts['cores']} cores"
    return f"{facts['processor']}, {threads}, torch {facts['torch']}, Python {facts['python']}"


# ------------------------------------------------------------------------------ attention

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


# ------------------------------------------------------------------------------ explorer

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STORY = 'One day Lily Reed met Tom Fox. Little Lily has a red ball. She says, "I am Lily'
TYPED = """async (letters) => {
  const area = document.getElementById("own");
  const times = [];
  for (const letter of letters) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const started = performance.now();
    area.value += letter;
    area.dispatchEvent(new Event("input"));
    document.body.offsetHeight; // the page is laid out anew
    times.push(performance.now() - started);
  }
  return times;
}"""


def explorer(options: argparse.Namespace) -> dict[str, Any]:
    """the explorer's page in Chromium: size, opening, a typed letter, words written a second"""
    path = options.page or newest_run() / "explorer.html"
    if not path.is_file():
        advice = "make it with python scripts/explore.py, or name another with --page"
        raise UserError(f"{path}: there is no such page; {advice}", DATA)
    print(describe(machine()) + "\n")
    with chromium() as browser:
        seconds = [opening(browser, path) for _ in range(3 if options.quick else 7)]
        page = opened(browser, path)
        page.fill("#own", STORY)
        typed = page.evaluate(TYPED, 5 * " and x.")
        rates = [words_a_second(page) for _ in range(1 if options.quick else 3)]
    found = {
        "megabytes": path.stat().st_size / 1e6,
        "seconds to open": statistics.median(seconds),
        "milliseconds a typed letter": statistics.median(typed),
        "tokens a second": statistics.median(rates),
    }
    print("\n".join(f"{name:28} {value:8.2f}" for name, value in found.items()))
    return {"machine": machine(), "page": str(path), **found}


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        advice = "pip install -c constraints.txt -e '.[dev]'"
        raise UserError(f"explorer: needs Playwright; {advice}", CONFIG) from None
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise UserError(f"explorer: needs one of {', '.join(BROWSERS)}; install it", CONFIG)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


def opened(browser: Any, path: Path) -> Any:
    """A page that is ready to be used, without a network."""
    page = browser.new_context(offline=True).new_page()
    page.goto(f"{path.resolve().as_uri()}#read?text=own")
    page.wait_for_selector("html[data-ready]", state="attached")
    return page


def opening(browser: Any, path: Path) -> float:
    """Seconds from nothing to a page that answers."""
    started = time.perf_counter()
    opened(browser, path).context.close()
    return time.perf_counter() - started


def words_a_second(page: Any) -> float:
    """As the page itself tells, of 200 tokens."""
    page.evaluate("location.hash = '#write'")
    page.fill("#write-length", "200")
    page.click("#write")
    said = page.wait_for_function(
        "() => document.querySelector('#main [role=status]')?.textContent.match(/, (\\d+) a sec/)"
    )
    return float(said.json_value()[1])


# ------------------------------------------------------------------------------ command line

Question = Callable[[argparse.Namespace], dict[str, Any]]
QUESTIONS: dict[str, Question] = {"attention": attention, "explorer": explorer}


def main(arguments: list[str]) -> None:
    options = command_line().parse_args(arguments)
    results = QUESTIONS[options.question](options)
    if options.json:
        write_json(options.json, results)
        print(f"made {options.json}")


def command_line() -> argparse.ArgumentParser:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    questions = parser.add_subparsers(dest="question", required=True, metavar="QUESTION")
    for name, function in QUESTIONS.items():
        question = questions.add_parser(name, help=function.__doc__, description=function.__doc__)
        add = question.add_argument
        add("--quick", action="store_true", help="a few sizes, in a few seconds")
        add("--threads", type=positive, default=1, metavar="N", help="default: 1, the steadiest")
        if name == "explorer":
            add("--page", type=Path, metavar="FILE", help="default: that of the newest run")
        add("--json", type=Path, metavar="FILE", help="write all numbers here")
    return parser


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


if __name__ == "__main__":
    run_command(main)
