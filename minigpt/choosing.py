"""What to train with on this machine, found by trying where a setting leaves it open.

The choice is kept in the run's `config.yaml`, so that resuming repeats it. Everything else was
measured once for all machines: see docs/performance.md.

settings -> settings with the number format and the threads filled in
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from minigpt import distributed
from minigpt.config import Config
from minigpt.device import choose_device
from minigpt.model import TransformerBlock
from minigpt.rotary import Rotary


def with_choices(config: Config) -> tuple[Config, list[str]]:
    """Fills in `precision: auto` and `threads: None` on a CPU; -> also a line for each trial."""
    if choose_device(distributed.own_device(config.device)).type != "cpu":
        return config, []
    choices: dict[str, Any] = {}
    lines = []
    if config.threads is None:
        choices["threads"], line = distributed.from_first(lambda: fastest_threads(config))
        lines += [line] if line else []
    if config.precision == "auto":
        choices["precision"], line = distributed.from_first(lambda: faster_precision(config))
        lines += [line] if line else []
    return config.model_copy(update=choices), lines


@contextlib.contextmanager
def using_threads(number: int | None) -> Iterator[None]:
    """A context in which PyTorch computes with so many threads, as far as there are processors."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(number, processors()) if number else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def processors() -> int:
    """How many this process may use, as far as the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# ------------------------------------------------------------------------------ number format

# Below it the rest of a step takes so much longer than the products that bfloat16 gains little.
WORTHWHILE_PRODUCT = 2**26  # multiplications
PAYS = 3.0  # products so many times as fast make the whole step faster


def faster_precision(config: Config) -> tuple[str, str | None]:
    """The number format for training on this CPU, by timing a product as wide as the model's.

    Some processors have units that compute bfloat16 many times as fast as float32; others compute
    it more slowly, and nothing else tells them apart.
    """
    rows = config.train.batch_size // distributed.world_size() * config.model.context_length
    width, hidden = config.model.embed_dim, config.model.feed_forward_dim
    if rows * width * hidden < WORTHWHILE_PRODUCT:
        return "float32", None
    gain = bfloat16_gain(width, hidden)
    chosen = "bfloat16" if gain > PAYS else "float32"
    return chosen, f"{chosen}, as products in bfloat16 are {gain:.1f} times as fast here"


def bfloat16_gain(width: int, hidden: int) -> float:
    """How many times as fast a product is in bfloat16, on one thread: others may be busy."""
    formats = (torch.float32, torch.bfloat16)
    with using_threads(1):
        slow, fast = (seconds_of(product(dtype, width, hidden), 7) for dtype in formats)
    return slow / fast


def product(dtype: torch.dtype, width: int, hidden: int, rows: int = 512) -> Callable[[], object]:
    first, second = torch.ones(rows, width, dtype=dtype), torch.ones(width, hidden, dtype=dtype)
    return lambda: first @ second


def seconds_of(work: Callable[[], object], times: int) -> float:
    """The shortest of several times, which nothing else interrupted."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


# ------------------------------------------------------------------------------ threads

FEW = 4  # threads that are always worth having
TOKENS = 2048  # of a trial at most
FEWER_PAY = 1.1  # times as fast with half the threads


def fastest_threads(config: Config) -> tuple[int | None, str | None]:
    """How many threads are fastest, by trying all, half of them, a quarter, … on one block.

    PyTorch takes a thread for each processor that it sees. Those of a small model wait for each
    other, and so do those of a container that may use a few processors of many. None, which is
    all of them, where there are few or OMP_NUM_THREADS says how many.
    """
    most = torch.get_num_threads()
    if most <= FEW or "OMP_NUM_THREADS" in os.environ:
        return None, None
    work = block_step(config)
    threads = most
    seconds = seconds_with(threads, work)
    while threads > 1 and (fewer := seconds_with(threads // 2, work)) * FEWER_PAY < seconds:
        threads, seconds = threads // 2, fewer
    return threads, f"{threads} of {most} threads, the fastest of those tried"


def seconds_with(threads: int, work: Callable[[], object]) -> float:
    with using_threads(threads):
        return seconds_of(work, 4)


def block_step(config: Config) -> Callable[[], object]:
    """One block of the model, there and back."""
    model = config.model
    rotary = Rotary(model.head_dim, model.context_length) if model.positions == "rotary" else None
    block = TransformerBlock(model, rotary)
    rows = min(config.train.batch_size, max(TOKENS // model.context_length, 1))
    inputs = torch.randn(rows, model.context_length, model.embed_dim)
    return lambda: block(inputs).sum().backward()
