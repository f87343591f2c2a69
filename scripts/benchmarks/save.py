"""What safety costs: a checkpoint of the default model, and looking whether numbers are finite."""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measuring import Call, describe, machine, milliseconds


def save(options: argparse.Namespace) -> dict[str, Any]:
    """a save of the default model, flushed and read back, and the finite checks of a step"""
    import torch

    from minigpt.config import Config

    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        calls = what_is_measured(Path(folder))
        saving = {"a save": calls.pop("a save")}
        times = milliseconds(calls, 2 if options.quick else 20)
        # By the clock on the wall: waiting for a disk is no computing.
        times |= milliseconds(saving, 0.2 if options.quick else 3, by_wall=True)
    shares = {
        "saving, of the training": times["a save"] / Config().train.eval_interval / times["a step"],
        "checking, of a step": times["the finite checks of a step"] / times["a step"],
    }
    print(describe(machine()))
    for name, value in times.items():
        print(f"{name:<32} {value:10.4f} ms")
    for name, share in shares.items():
        print(f"{name:<32} {share:10.4%}")
    return {"machine": machine(), "milliseconds": times, "shares": shares}


def what_is_measured(folder: Path) -> dict[str, Call]:
    """A step of the default training, its checks, and a save of it into `folder`."""
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

    config, tokenizer = Config(), Tokenizer.word(vocabulary())
    tokenizer.save(folder / "tokenizer.json")
    model = GPT(config.model, tokenizer.vocab_size)
    optimizers = build_optimizers(model, config.train)
    size = config.train.batch_size, config.model.context_length
    ids, number = torch.randint(tokenizer.vocab_size, size), torch.tensor(1.0)

    def step() -> None:
        model(ids).float().logsumexp(-1).mean().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    return {
        "a step": step,
        "the finite checks of a step": lambda: [np.isfinite(float(number)) for _ in range(2)],
        "the finite checks of a save": lambda: checkpoint.require_finite(weights_of(model), 1),
        "a save": lambda: checkpoint.save(folder, TrainingState(step=1), model, optimizers),
    }
