"""What a training tells while it runs: a bar, lines to parse, and files to keep.

`metrics.jsonl` has one line per logged step, `samples.txt` what the model wrote on the way.
Resuming cuts both back to the checkpoint, so every step stands there once.

numbers of a step -> terminal, metrics.jsonl, samples.txt
"""

import contextlib
import json
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from minigpt import storage
from minigpt.errors import silence

SAMPLE_HEADER = "======== step "
HEADER_LINE = re.compile(rf"^{SAMPLE_HEADER}(\d+)$", re.MULTILINE)


class TrainingLog:
    """Says and keeps what happens from `first_step` on; `seconds` counts the training's time."""

    def __init__(self, run_dir: Path, first_step: int, max_steps: int) -> None:
        self.metrics_path, self.samples_path = run_dir / "metrics.jsonl", run_dir / "samples.txt"
        self.records = [r for r in read_metrics(run_dir) if r["step"] <= first_step]
        storage.write_text(self.metrics_path, "".join(json.dumps(r) + "\n" for r in self.records))
        storage.write_text(self.samples_path, samples_until(self.samples_path, first_step))
        self.seconds_before = self.records[-1]["seconds"] if self.records else 0.0
        self.started = time.monotonic()
        self.val_loss = float("nan")
        self.bar = tqdm(
            total=max_steps,
            initial=first_step,
            desc="training",
            unit="step",
            disable=None,  # off where nobody watches
            dynamic_ncols=True,
            bar_format="{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} steps"
            " [{elapsed}<{remaining}{postfix}]",
        )

    @property
    def seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.started

    def say(self, line: str) -> None:
        """Prints a line above the bar, on whatever a console can show."""
        encoding = sys.stdout.encoding or "ascii"
        with self.even_if_nobody_listens():
            tqdm.write(line.encode(encoding, "backslashreplace").decode(encoding))
            sys.stdout.flush()

    @contextlib.contextmanager
    def even_if_nobody_listens(self) -> Iterator[None]:
        """A console that fails costs no training; a reader who leaves, as `| head` does, ends it.

        Then all that was learned is saved, as after Ctrl-C.
        """
        try:
            yield
        except OSError as error:
            self.bar.disable = True
            silence(sys.stdout)
            if isinstance(error, BrokenPipeError):
                signal.raise_signal(signal.SIGINT)

    def record(self, step: int, **numbers: Any) -> None:
        entry = {"step": step, **numbers, "seconds": round(self.seconds, 3)}
        self.records.append(entry)
        storage.append_line(self.metrics_path, json.dumps(entry))

    def training(self, step: int, loss: float, rate: float, tokens_per_second: float) -> None:
        """A logged training step."""
        self.record(step, train_loss=loss, learning_rate=rate, tokens_per_second=tokens_per_second)
        with self.even_if_nobody_listens():
            self.bar.set_postfix_str(
                f"loss {loss:.3f}, val {self.val_loss:.3f}, {tokens_per_second:,.0f} tokens/s"
            )
        if self.bar.disable:
            milliseconds = 1000 * self.seconds / max(step, 1)
            self.say(f"iter {step}: loss {loss:.4f}, time {milliseconds:.2f}ms")

    def evaluation(self, step: int, train_loss: float, val_loss: float, **more: Any) -> None:
        """An evaluation of the whole validation split."""
        self.val_loss = val_loss
        self.record(step, val_loss=val_loss, **more)
        self.say(f"step {step}: train loss {train_loss:.4f}, val loss {val_loss:.4f}")

    def sample(self, step: int, text: str) -> None:
        storage.append_line(self.samples_path, f"{SAMPLE_HEADER}{step}\n{text}\n")

    def advance(self, expected_steps: float) -> None:
        """One more step of as many as are expected, by the number of steps or by the clock."""
        self.bar.total = round(expected_steps)
        with self.even_if_nobody_listens():
            self.bar.update()

    @property
    def train_loss(self) -> float:
        """The training loss that was logged last."""
        losses = [record["train_loss"] for record in self.records if "train_loss" in record]
        return losses[-1] if losses else float("nan")

    def sync(self) -> None:
        """Makes sure that the records outlive a power cut, as a checkpoint does."""
        storage.sync_file(self.metrics_path)

    def close(self) -> None:
        with self.even_if_nobody_listens():
            self.bar.close()


class Silence(TrainingLog):
    """The log of a process that is not the first: it says and keeps nothing."""

    def __init__(self) -> None:
        self.records, self.seconds_before, self.started = [], 0.0, time.monotonic()

    def say(self, line: str) -> None: ...

    def training(self, *_: Any, **more: Any) -> None: ...

    def evaluation(self, *_: Any, **more: Any) -> None: ...

    def sample(self, *_: Any, **more: Any) -> None: ...

    def advance(self, expected_steps: float) -> None: ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


def read_metrics(run_dir: Path) -> list[dict[str, Any]]:
    """The records of a run, in order; a line that is torn or damaged is left out."""
    path = run_dir / "metrics.jsonl"
    if not path.exists():
        return []
    records = []
    for line in path.read_bytes().splitlines():
        with contextlib.suppress(ValueError):
            records.append(json.loads(line))
    return [record for record in records if is_record(record)]


def is_record(record: Any) -> bool:
    """Whether it tells of a step; a damaged line may be JSON and say something else."""
    if not isinstance(record, dict) or not {"step", "seconds"} <= record.keys():
        return False
    numbers = (record.get(name, 0) for name in ("step", "seconds", "train_loss", "val_loss"))
    return all(isinstance(number, int | float) for number in numbers)


def samples_until(path: Path, last_step: int) -> str:
    """The part of a `samples.txt` that was written up to `last_step`."""
    if not path.exists():
        return ""
    text = path.read_bytes().decode("utf-8", "replace")
    later = (m.start() for m in HEADER_LINE.finditer(text) if int(m[1]) > last_step)
    return text[: next(later, len(text))]
