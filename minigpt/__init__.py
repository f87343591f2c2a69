"""A tiny GPT: train it in minutes, let it write, and see what each attention head has learned.

    config = minigpt.load_config(None, ["max_steps=500"])
    run = minigpt.load_run(minigpt.train(config))
    print(minigpt.generate(run.model, run.tokenizer, "One day", run.config.sample, seed=1)[0])

Each name is imported when it is first used, so that importing minigpt takes no time.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minigpt.checkpoint import load_run as load_run
    from minigpt.generation import generate as generate
    from minigpt.heads.capture import capture_attention as capture_attention
    from minigpt.heads.snapshot import draw_attention as draw_attention
    from minigpt.library import load_config as load_config
    from minigpt.library import open_corpus as open_corpus
    from minigpt.library import train as train
    from minigpt.model import GPT as GPT

MODULES = {
    "load_config": "minigpt.library",
    "open_corpus": "minigpt.library",
    "train": "minigpt.library",
    "load_run": "minigpt.checkpoint",
    "GPT": "minigpt.model",
    "generate": "minigpt.generation",
    "capture_attention": "minigpt.heads.capture",
    "draw_attention": "minigpt.heads.snapshot",
}
__all__ = sorted(MODULES)


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return getattr(importlib.import_module(MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES})
