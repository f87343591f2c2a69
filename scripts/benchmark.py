"""Measures minigpt against itself and others: python scripts/benchmark.py QUESTION [--quick]

One subcommand for each question. Everything that is compared runs in the same process, in turns,
so that a busy machine slows all of it alike; read the ratios before the milliseconds.
"""

import argparse
import contextlib
import io
import itertools
import os
import platform
import shutil
import statistics
import sys
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


# ------------------------------------------------------------------------------ peers


@dataclass(frozen=True)
class Size:
    """A model that all sides build: GPT-2's architecture, without dropout or biases."""

    name: str
    layers: int
    heads: int
    width: int
    context: int
    batch: int


VOCABULARY = 65  # tiny Shakespeare's characters
TRAINED = (Size("4x128", 4, 4, 128, 64, 64), Size("6x384", 6, 6, 384, 256, 16))
WRITTEN = (
    Size("4x128", 4, 4, 128, 256, 1),
    Size("4x128", 4, 4, 128, 256, 32),
    Size("6x384", 6, 6, 384, 256, 1),
)
QUICK = Size("2x32", 2, 2, 32, 32, 2)


def our_model(size: Size) -> Any:
    from minigpt.config import ModelConfig
    from minigpt.model import GPT

    shape: dict[str, Any] = {
        "num_layers": size.layers,
        "num_heads": size.heads,
        "embed_dim": size.width,
    }
    like_gpt2: dict[str, Any] = {"positions": "learned", "activation": "gelu", "qk_norm": False}
    more: dict[str, Any] = {"context_length": size.context, "feed_forward_multiple": 4}
    return GPT(ModelConfig(**shape | like_gpt2 | more), VOCABULARY)


def nanogpt_model(size: Size, folder: Path) -> Any:
    """nanoGPT's model, from a checkout of it on disk."""
    import importlib.util

    file = folder / "model.py"
    if not file.is_file():
        raise UserError(f"--nanogpt {folder}: there is no model.py; name a checkout", DATA)
    spec = importlib.util.spec_from_file_location("nanogpt_model", file)
    assert spec is not None and spec.loader is not None
    module = sys.modules["nanogpt_model"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shape: dict[str, Any] = {"n_layer": size.layers, "n_head": size.heads, "n_embd": size.width}
    more: dict[str, Any] = {
        "block_size": size.context,
        "vocab_size": VOCABULARY,
        "dropout": 0.0,
        "bias": False,
    }
    with contextlib.redirect_stdout(io.StringIO()):
        return module.GPT(module.GPTConfig(**shape, **more))


def transformers_model(size: Size) -> Any:
    """Hugging Face's GPT-2, or None where transformers is not installed."""
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return None
    shape: dict[str, Any] = {"n_layer": size.layers, "n_head": size.heads, "n_embd": size.width}
    drops: dict[str, Any] = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    more: dict[str, Any] = {"n_positions": size.context, "vocab_size": VOCABULARY}
    ends: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None}
    return GPT2LMHeadModel(GPT2Config(**shape, **drops, **more, **ends))


def ratios(size: Size, tokens: int, times: dict[str, float]) -> dict[str, Any]:
    """Tokens a second of each side, told as a row, beside how many times as fast ours is."""
    rates = {name: 1000 * tokens / time for name, time in times.items()}
    best = max((name for name in rates if name.startswith("ours")), key=rates.__getitem__)
    row = f"{size.name:6} batch {size.batch:<3}"
    for name, rate in rates.items():
        row += f" | {name} {rate:,.0f}"
        row += "" if name.startswith("ours") else f" ({rates[best] / rate:.2f} x)"
    print(row, flush=True)
    return {"size": asdict(size), "tokens a second": rates}


# ------------------------------------------------------------------------------ train


def train(options: argparse.Namespace) -> dict[str, Any]:
    """a step of training: ours in two precisions, nanoGPT's, Hugging Face's; tokens a second"""
    import torch

    torch.set_num_threads(options.threads)
    print(f"{describe(machine())}\n\nin brackets: how many times as fast our faster one is")
    cases = []
    for size in (QUICK,) if options.quick else TRAINED:
        steps = {
            "ours float32": our_step(size, torch.float32),
            "ours bfloat16": our_step(size, torch.bfloat16),
        }
        if options.nanogpt:
            model = nanogpt_model(size, options.nanogpt)
            steps["nanoGPT"] = plain_step(size, model, lambda x, y, model=model: model(x, y)[1])
        if (model := transformers_model(size)) is not None:
            steps["transformers"] = plain_step(
                size, model, lambda x, y, model=model: next_token_loss_of(model, x, y)
            )
        times = milliseconds(steps, 0.2 if options.quick else options.seconds)
        cases.append(ratios(size, size.batch * size.context, times))
    return {"machine": machine(), "cases": cases}


def next_token_loss_of(model: Any, x: Any, y: Any) -> Any:
    from minigpt.loss import next_token_loss

    return next_token_loss(model(x).logits, y)


def rows(size: Size) -> tuple[Any, Any]:
    import torch

    ids = torch.randint(VOCABULARY, (size.batch, size.context + 1))
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def our_step(size: Size, precision: Any) -> Call:
    """One step as the trainer takes it."""
    import torch

    from minigpt.config import TrainConfig
    from minigpt.device import autocast
    from minigpt.loss import next_token_loss
    from minigpt.optim import build_optimizers

    model = our_model(size)
    if precision != torch.float32:
        model.write_out_attention()
    optimizers = build_optimizers(model, TrainConfig(optimizer="adamw"))
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


def plain_step(size: Size, model: Any, loss_of: Callable) -> Call:
    """One step as nanoGPT takes it on a CPU: float32, AdamW, clipped gradients."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x, y = rows(size)

    def step() -> None:
        loss_of(x, y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


# ------------------------------------------------------------------------------ generate


def generate(options: argparse.Namespace) -> dict[str, Any]:
    """writing 200 tokens: ours, nanoGPT, Hugging Face with its cache; tokens a second"""
    import torch

    torch.set_num_threads(options.threads)
    bandwidth = bytes_a_second()
    print(f"{describe(machine())}, memory is read at {bandwidth / 1e9:.0f} GB a second")
    print("\nin brackets: how many times as fast ours is")
    cases = []
    for size in (QUICK,) if options.quick else WRITTEN:
        number = min(200, size.context - 4)
        torch.manual_seed(0)
        prompt = torch.randint(VOCABULARY, (1, 4))
        model = our_model(size).eval()
        writers = {"ours": our_writer(model, prompt, size.batch, number)}
        if options.nanogpt:
            nano = nanogpt_model(size, options.nanogpt).eval()
            writers["nanoGPT"] = nanogpt_writer(nano, prompt.repeat(size.batch, 1), number)
        if (other := transformers_model(size)) is not None:
            other.eval()
            writers["transformers"] = hf_writer(other, prompt.repeat(size.batch, 1), number)
        times = milliseconds(writers, 0.2 if options.quick else options.seconds)
        case = ratios(size, size.batch * number, times)
        if size.batch == 1:
            reached = case["tokens a second"]["ours"] * 4 * model.num_parameters / bandwidth
            case["share of bandwidth"] = reached
            print(f"       reading the weights once a token takes {reached:.0%} of the time")
        cases.append(case)
    return {"machine": machine(), "bytes a second": bandwidth, "cases": cases}


def bytes_a_second() -> float:
    """How fast memory is read, by adding up what is larger than a cache."""
    import torch

    numbers = torch.ones(2**27)
    return 1000 * 4 * len(numbers) / milliseconds({"sum": numbers.sum}, 0.5)["sum"]


def our_writer(model: Any, prompt: Any, batch: int, number: int) -> Call:
    import torch

    from minigpt.config import SampleConfig
    from minigpt.generate import next_ids

    sampling = SampleConfig(max_new_tokens=number, min_p=None)

    @torch.inference_mode()
    def write() -> None:
        for _ in next_ids(model, prompt, sampling, 1, range(batch), True):
            pass

    return write


def nanogpt_writer(model: Any, prompts: Any, number: int) -> Call:
    return lambda: model.generate(prompts, number)


def hf_writer(model: Any, prompts: Any, number: int) -> Call:
    import torch

    settings: dict[str, Any] = {"do_sample": True, "top_k": 0, "use_cache": True, "pad_token_id": 0}
    seen = torch.ones_like(prompts)
    return lambda: model.generate(
        prompts, attention_mask=seen, max_new_tokens=number, min_new_tokens=number, **settings
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
QUESTIONS: dict[str, Question] = {
    "attention": attention,
    "train": train,
    "generate": generate,
    "explorer": explorer,
}
PEERS = {"train", "generate"}  # questions that others are asked, too


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
        if name in PEERS:
            add("--nanogpt", type=Path, metavar="FOLDER", help="a checkout of nanoGPT to compare")
            add("--seconds", type=positive, default=20, metavar="N", help="a size; default: 20")
        add("--json", type=Path, metavar="FILE", help="write all numbers here")
    return parser


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


if __name__ == "__main__":
    run_command(main)
