"""Tells TensorBoard or Weights & Biases what a training writes into its run directory.

They read `metrics.jsonl` and `samples.txt` as they grow, after every step; the training knows
nothing of them. One that fails is told of once and left out; it can't end a training.

metrics.jsonl, samples.txt -> numbers, texts and pictures in another tool
"""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from minigpt.config import Config
from minigpt.errors import CONFIG, UserError
from minigpt.extras import require
from minigpt.training_log import HEADER_LINE

Picture = Callable[[Any], bytes]  # of a model: a PNG
TENSORBOARD = "tensorboard"  # the folder in a run


class Logger(Protocol):
    """Another tool; `step` counts training steps."""

    def numbers(self, step: int, values: dict[str, float]) -> None: ...
    def text(self, step: int, text: str) -> None: ...
    def picture(self, step: int, png: bytes) -> None: ...
    def close(self) -> None: ...


def require_loggers(config: Config) -> None:
    """Raises UserError where a tool that the settings ask for isn't installed."""
    if config.log.tensorboard:
        require("tensorboard", "logging", "log.tensorboard", "TensorBoard")
    if config.log.wandb:
        require("wandb", "logging", "log.wandb", "Weights & Biases")


def open_loggers(config: Config, run_dir: Path, resumed: bool) -> list[Logger]:
    """The tools that the settings ask for; raises UserError where one can't be had."""
    require_loggers(config)
    loggers: list[Logger] = []
    if config.log.tensorboard:
        loggers.append(TensorBoard(run_dir / TENSORBOARD, resumed))
    if config.log.wandb:
        loggers.append(WandB(config, run_dir))
    return loggers


class TensorBoard:
    """Event files in the run's folder; look at them with `tensorboard --logdir runs`."""

    def __init__(self, folder: Path, resumed: bool) -> None:
        self.folder, self.resumed = folder, resumed
        self.writer: Any = None

    def at(self, step: int) -> Any:
        """The writer; in a resumed run it hides what was told of this step and later ones."""
        if self.writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(self.folder, purge_step=step if self.resumed else None)
        return self.writer

    def numbers(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.at(step).add_scalar(name, value, step)

    def text(self, step: int, text: str) -> None:
        shown = "".join(f"    {line}\n" for line in text.splitlines())  # Markdown takes it as it is
        self.at(step).add_text("sample", shown, step)

    def picture(self, step: int, png: bytes) -> None:
        from matplotlib.image import imread

        self.at(step).add_image("attention", imread(io.BytesIO(png)), step, dataformats="HWC")

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class WandB:
    """A run of Weights & Biases, named like ours; `WANDB_MODE=offline` needs no account."""

    def __init__(self, config: Config, run_dir: Path) -> None:
        import wandb

        try:
            self.run = wandb.init(
                project=config.log.wandb_project,
                name=run_dir.name,
                config=config.model_dump(),
                settings=wandb.Settings(silent=True, console="off"),
            )
        except Exception as error:
            advice = "log in with `wandb login`, or set WANDB_MODE=offline"
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(f"log.wandb: can't start ({reason}); {advice}", CONFIG) from None

    def numbers(self, step: int, values: dict[str, float]) -> None:
        self.run.log({**values, "step": step})

    def text(self, step: int, text: str) -> None:
        import wandb

        self.run.log({"sample": wandb.Html(f"<pre>{escaped(text)}</pre>"), "step": step})

    def picture(self, step: int, png: bytes) -> None:
        import wandb
        from PIL import Image

        self.run.log({"attention": wandb.Image(Image.open(io.BytesIO(png))), "step": step})

    def close(self) -> None:
        self.run.finish()


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


# ------------------------------------------------------------------------------ following


class Follower:
    """Looks on while a model trains, as a context; call it after every step.

    A run that goes on tells only what comes after the step at which it does. `picture` draws what
    the model attends to, every `interval` steps.
    """

    def __init__(
        self, run_dir: Path, loggers: Sequence[Logger], picture: Picture, interval: int
    ) -> None:
        self.loggers, self.picture, self.interval = list(loggers), picture, interval
        self.metrics, self.samples = Tail(run_dir / "metrics.jsonl"), Tail(run_dir / "samples.txt")
        self.first_step: int | None = None

    def __enter__(self) -> "Follower":
        return self

    def __exit__(self, *error: object) -> None:
        """Tells what came after the last step, and ends."""
        if self.first_step is not None:
            self.tell_new()
        self.each(lambda logger: logger.close())

    def __call__(self, step: int, model: Any) -> None:
        if self.first_step is None:
            self.first_step = step
        self.tell_new()
        if self.loggers and step % self.interval == 0:
            try:
                png = self.picture(model)
            except Exception as error:
                self.warn("the picture of attention", error)
                self.interval = sys.maxsize
                return
            self.each(lambda logger: logger.picture(step, png))

    def tell_new(self) -> None:
        for line in self.metrics.whole_lines():
            record = json.loads(line)
            step = record.pop("step")
            if step >= (self.first_step or 0):
                values = dict(flat(record))
                self.each(lambda logger, step=step, values=values: logger.numbers(step, values))
        for step, text in samples_in(self.samples.whole_lines()):
            if step >= (self.first_step or 0):
                self.each(lambda logger, step=step, text=text: logger.text(step, text))

    def each(self, tell: Callable[..., None]) -> None:
        """Tells every tool; one that fails is left out from now on."""
        for logger in list(self.loggers):
            try:
                tell(logger)
            except Exception as error:
                self.warn(type(logger).__name__, error)
                self.loggers.remove(logger)

    def warn(self, what: str, error: Exception) -> None:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        message = f"warning: {what} failed and is left out ({reason}); the training goes on"
        encoding = sys.stderr.encoding or "ascii"
        print(message.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)


class Tail:
    """A file that somebody else writes, read as it grows."""

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, 0

    def whole_lines(self) -> list[str]:
        """The lines that are new and complete."""
        if not self.path.exists() or os.path.getsize(self.path) <= self.place:
            return []
        with self.path.open("rb") as file:
            file.seek(self.place)
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]
        self.place += len(new)
        return new.decode("utf-8", "replace").split("\n")[:-1]


def samples_in(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The samples and their steps, of lines of a `samples.txt` that begin with a header."""
    step, text = 0, list[str]()
    for line in lines:
        if header := HEADER_LINE.match(line):
            if step:
                yield step, "\n".join(text).rstrip("\n")
            step, text = int(header[1]), []
        else:
            text.append(line)
    if step:
        yield step, "\n".join(text).rstrip("\n")


def flat(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """All numbers in a record: `{"slots": {"noun": {"loss": 1}}}` -> `slots/noun/loss`, 1."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield prefix + name, float(value)
