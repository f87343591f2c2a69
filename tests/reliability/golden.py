"""One run that nothing ever happens to, and the hash of what it is at each of its steps.

Whatever happens to another run of the same settings: at a step it must have that step's hash.
"""

import contextlib
import functools
import hashlib
import os
import random
import signal
import sys
import traceback
from pathlib import Path
from threading import RLock

from conftest import TEXT
from tqdm import tqdm

from minigpt import saved_runs, storage
from minigpt.command_line import load_config
from minigpt.errors import run_command
from minigpt.text import open_text
from minigpt.trainer import train

STEPS = 60
SETTINGS = [
    "data.tokenizer=byte",
    "data.val_fraction=0.04",
    "model.num_layers=1",
    "model.num_heads=1",
    "model.embed_dim=4",
    "model.context_length=8",
    "model.dropout=0.1",
    "train.batch_size=2",
    "train.optimizer=adamw",
    f"train.max_steps={STEPS}",
    "train.eval_interval=10",
    "train.save_interval=5",
    "train.sample_interval=20",
    "train.log_interval=1",
    "sample.max_new_tokens=4",
    "device=cpu",
    "precision=float32",
]


class Golden:
    """The settings, the corpus, and the hash of the checkpoint of each step."""

    def __init__(self, folder: Path) -> None:
        self.text = folder / "text.txt"
        self.text.write_text(TEXT, encoding="utf-8")
        self.cache = folder / "cache"
        self.corpus = open_text(self.config(), self.cache)
        self.run_dir = folder / "golden"
        self.train(self.run_dir, "save_interval=1", "keep=1000")
        self.table = {
            saved_runs.step_of(path): hash_of(path) for path in saved_runs.checkpoints(self.run_dir)
        }
        assert len(self.table) == STEPS

    def config(self, *overrides):
        return load_config(None, [f"data.path={self.text}", *SETTINGS, *overrides])

    def train(self, run_dir, *overrides, resume=False, observers=()):
        return train(self.config(*overrides), self.corpus, run_dir, resume, observers)

    def go_on(self, run_dir, *overrides, observers=()):
        """Resumes, or starts where there is nothing to resume; -> the exit code."""
        resume = bool(saved_runs.checkpoints(run_dir))
        return self.train(run_dir, *overrides, resume=resume, observers=observers)

    def checkpoint(self, step):
        return self.run_dir / "checkpoints" / f"step-{step:08d}"

    def stopped_at(self, step, run_dir, *overrides):
        """A run that a signal ended after `step` steps."""
        code = self.go_on(run_dir, *overrides, observers=[signal_at(step)])
        assert code == 130

    def require(self, run_dir, step=None):
        """The newest good checkpoint has the hash of its step; -> that step."""
        newest, _ = saved_runs.last_good(run_dir)
        assert newest is not None, f"{run_dir} has no good checkpoint"
        found = saved_runs.step_of(newest)
        assert hash_of(newest) == self.table[found], f"step {found} is not what it should be"
        assert step in (None, found)
        return found


@functools.cache
def golden_in(folder: Path) -> Golden:
    return Golden(folder)


def hash_of(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        total.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def signal_at(step, number=signal.SIGINT):
    def look(now, model):
        if now == step:
            signal.raise_signal(number)

    return look


def strays(run_dir: Path) -> list[str]:
    return [str(path) for path in run_dir.rglob("*.partial")]


# ------------------------------------------------------------------------------ real processes


def forked(function, said: Path) -> int:
    """A process of its own that runs `function` as a script does; -> its number.

    It is forked, so that PyTorch need not be imported again; what it says goes to `said`.
    """
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 1
    try:
        sys.stdout = sys.stderr = said.open("w", encoding="utf-8", buffering=1)
        sys.argv = ["train.py"]
        tqdm.set_lock(RLock())  # its own is shared: one that is killed would never give it back
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run_command(lambda arguments: function())
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:  # whatever happened, this process must not go on as a second pytest
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        os._exit(code)


def ended(pid: int) -> int:
    """Waits for a process; -> its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def errors_in(said: Path) -> list[str]:
    """What was said beside the story of a training: nothing, or one line; never a traceback."""
    text = said.read_text(encoding="utf-8")
    assert "Traceback" not in text, text
    return [line for line in text.splitlines() if line.startswith("error: ")]


def kill_at_failpoint(number: int):
    """For `storage.on_failpoint`: this process kills itself before its move `number` on disk."""
    left = iter(range(number))

    def look(name, path):
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    return look


@contextlib.contextmanager
def failpoint(look):
    before, storage.on_failpoint = storage.on_failpoint, look
    try:
        yield
    finally:
        storage.on_failpoint = before


def again(seed, case) -> random.Random:
    """Random numbers of one case; a failing test prints the case, which its name repeats."""
    print(f"to repeat: seed {seed}, case {case}")
    return random.Random(f"{seed}/{case}")
