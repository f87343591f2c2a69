"""From a run to its page.

run -> explorer.html
"""

from pathlib import Path

from minigpt import storage
from minigpt.checkpoint import Run
from minigpt.explorer.bundle import page
from minigpt.explorer.contents import contents, weights
from minigpt.heads.inspection import inspect


def build(run: Run, out: Path, *, fast: bool = False, full: bool = False) -> int:
    """Writes the page, whole or not at all; returns its size in bytes."""
    with storage.open_new(out) as file:  # a place that can't be written is told before the work
        look = inspect(run, fast=fast)
        return file.write(page(contents(look), weights(run, full)).encode())


def closing_words(run: Run, out: Path, size: int) -> str:
    """What was made, and what to do with it."""
    where = out.resolve()
    return "\n".join(
        [
            f"{run.run_dir}, step {run.step:,}: {len(run.model.blocks)} layers, "
            f"{run.model.num_parameters:,} parameters",
            f"made {out} ({size / 1e6:.1f} MB: the model itself is in it)",
            "next: open it in a browser, from disk",
            f"  {where.as_uri()}",
        ]
    )
