"""A tiny GPT: train it in minutes, let it write, and see what each attention head has learned.

    config = minigpt.load_config(None, ["max_steps=500"])
    run = minigpt.load_run(minigpt.train(config))
    print(minigpt.generate(run.model, run.tokenizer, "One day", run.config.sample, seed=1)[0])

Each name is imported when it is first used, so that importing minigpt takes no time.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minigpt.checkpoint import load_run as load_run
    from minigpt.command_line import load_config as load_config
    from minigpt.heads.capture import capture_attention as capture_attention
    from minigpt.heads.snapshot import draw_attention as draw_attention
    from minigpt.library import open_corpus as open_corpus
    from minigpt.library import train as train
    from minigpt.model import GPT as GPT

NAMES = {
    "load_config": "minigpt.command_line",
    "open_corpus": "minigpt.library",
    "train": "minigpt.library",
    "load_run": "minigpt.checkpoint",
    "GPT": "minigpt.model",
    "generate": "minigpt.generate",
    "capture_attention": "minigpt.heads.capture",
    "draw_attention": "minigpt.heads.snapshot",
}
__all__ = sorted(NAMES)


class CallableModule(ModuleType):
    """A module that is also the function of its name: `minigpt.generate(…)`."""

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])(*arguments, **more)


class Package(ModuleType):
    """Resolves its names when they are used; importing a module of such a name keeps both."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in NAMES and isinstance(value, ModuleType):
            value.__class__ = CallableModule
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name in NAMES:
            module = importlib.import_module(NAMES[name])
            return module if isinstance(module, CallableModule) else getattr(module, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *NAMES})


sys.modules[__name__].__class__ = Package
