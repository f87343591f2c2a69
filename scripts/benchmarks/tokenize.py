"""A text to ids on disk, beside tiktoken's own way with many texts."""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.measuring import describe, machine

NUM_WORDS, A_LINE = 50_000, 12
MOST_AT_ONCE = 64 * 10**6  # bytes for tiktoken, whose lists take thirty times as much memory


def tokenize(options: argparse.Namespace) -> dict[str, Any]:
    """a text to ids: ours from file to file, tiktoken's encode_ordinary_batch from list to list"""
    import torch

    torch.set_num_threads(options.threads)
    if hasattr(os, "sched_setaffinity"):  # both sides start as much as these cores take
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: options.threads]))
    print(f"{describe(machine())}\n\nmegabytes a second, and how many times as fast ours is")
    size = 10**6 * (2 if options.quick else options.megabytes)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        write_made_up(text, size)
        sizes = (1024,) if options.quick else (1024, 8192)
        cases = [measured(text, vocab_size, 1 if options.quick else 3) for vocab_size in sizes]
    return {"machine": machine(), "cases": cases}


def measured(text: Path, vocab_size: int, turns: int) -> dict[str, Any]:
    from minigpt.chunks import cut_into_chunks
    from minigpt.config import DataConfig
    from minigpt.text import TextSource, write_corpus

    settings = DataConfig(source="text", path=str(text), vocab_size=vocab_size)
    source = TextSource.find(settings)
    tokenizer = source.tokenizer()
    texts = list(islice(cut_into_chunks(source.blocks()), MOST_AT_ONCE // 2**17 + 1))
    sides: dict[str, tuple[int, Callable[[], object]]] = {
        "ours": (
            text.stat().st_size,
            lambda: write_corpus(text.with_suffix(".ids"), TextSource.find(settings), tokenizer),
        ),
        "tiktoken": (
            sum(len(part.encode()) for part in texts),
            lambda: tokenizer.encoding.encode_ordinary_batch(texts),
        ),
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(turns):
        for name, (size, call) in sides.items():
            started = time.perf_counter()
            call()
            rates[name].append(size / (time.perf_counter() - started) / 1e6)
    found = {name: statistics.median(values) for name, values in rates.items()}
    ratio = found["ours"] / found["tiktoken"]
    shown = ", ".join(f"{name} {rate:.1f}" for name, rate in found.items())
    print(f"{vocab_size:,} tokens: {shown} ({ratio:.2f} ×)")
    megabytes = round(text.stat().st_size / 1e6)
    return {"vocab_size": vocab_size, "megabytes": megabytes, "megabytes a second": found}


def write_made_up(path: Path, size: int) -> None:
    """At least `size` bytes of made-up words, each as frequent as the word of its rank."""
    import numpy as np

    random = np.random.default_rng(1)
    letters = np.array(list("etaoinshrdlucmfwypvb"))
    lengths = random.integers(2, 11, NUM_WORDS)
    words = np.array(["".join(random.choice(letters, length)) for length in lengths])
    shares = 1 / np.arange(10, NUM_WORDS + 10)
    with path.open("wb") as file:
        while file.tell() < size:
            drawn = words[random.choice(NUM_WORDS, 2**14, p=shares / shares.sum())]
            lines = (" ".join(drawn[at : at + A_LINE]) for at in range(0, len(drawn), A_LINE))
            file.write(".\n".join(lines).encode() + b".\n")
