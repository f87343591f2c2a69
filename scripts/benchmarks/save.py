"""What safety costs: a checkpoint of the default model, and looking whether numbers are finite."""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measuring import Call, describe, machine, milliseconds


def save(options: argparse.Namespace) -> dict[str, Any]:
    """a save of the default model, flushed and read back, and the finite checks of a step"""
    import numpy as np
    import torch

    from minigpt import checkpoint
    from minigpt.config import Config
    from minigpt.model import GPT
    from minigpt.optim import build_optimizers
    from minigpt.saved_runs import TrainingState
    from minigpt.stories.spelling import vocabulary
    from minigpt.tokenizer import Tokenizer
    from minigpt.weights import weights_of

    torch.set_num_threads(options.threads)
    config, tokenizer = Config(), Tokenizer.word(vocabulary())
    model = GPT(config.model, tokenizer.vocab_size)
    optimizers = build_optimizers(model, config.train)
    size = config.train.batch_size, config.model.context_length
    ids = torch.randint(tokenizer.vocab_size, size)

    def step() -> None:
        model(ids).float().logsumexp(-1).mean().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    def check() -> None:
        np.isfinite(float(loss)), np.isfinite(float(norm))

    loss, norm = torch.tensor(1.0), torch.tensor(1.0)
    step()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        tokenizer.save(Path(folder) / "tokenizer.json")

        def save_once() -> None:
            checkpoint.save(Path(folder), TrainingState(step=1), model, optimizers)

        calls: dict[str, Call] = {
            "a step": step,
            "the finite checks of a step": check,
            "the finite checks of a save": lambda: checkpoint.require_finite(weights_of(model), 1),
        }
        times = milliseconds(calls, 2 if options.quick else 20)
        times["a save"] = elapsed(save_once, 5 if options.quick else 30)
    saves = config.train.max_steps / config.train.eval_interval
    saving = saves * times["a save"] / config.train.max_steps
    shares = {
        "saving, of the training": saving / times["a step"],
        "checking, of a step": times["the finite checks of a step"] / times["a step"],
    }
    print(describe(machine()))
    for name, value in times.items():
        print(f"{name:<32} {value:10.4f} ms")
    for name, share in shares.items():
        print(f"{name:<32} {share:10.4%}")
    return {"machine": machine(), "milliseconds": times, "shares": shares}


def elapsed(call: Any, number: int) -> float:
    """The median in milliseconds by the clock on the wall: waiting for a disk is no computing."""
    import statistics
    import time

    times = []
    for _ in range(number):
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)
