"""Verifies every checkpoint of a run: python scripts/check_run.py [RUN] [--help]"""

import argparse
import shlex
from pathlib import Path

from minigpt.command_line import load_config
from minigpt.errors import DATA, UserError, run_command
from minigpt.options import Parser
from minigpt.saved_runs import (
    best_checkpoint,
    checkpoints,
    find_checkpoint,
    last_good,
    newest_run,
    read_state,
    require_own,
    verify,
)

USAGE = "python scripts/check_run.py [RUN]"


def parse(arguments: list[str]) -> argparse.Namespace:
    description = "Compares all files of a run's checkpoints with the digests written beside them."
    parser = Parser(usage=USAGE, description=description)
    parser.add_argument("run", nargs="?", metavar="RUN", help="without it the newest in runs/")
    return parser.parse_args(arguments)


def verdict(folder: Path) -> tuple[bool, str]:
    """Whether a checkpoint is whole, and a line about it."""
    try:
        verify(folder)
        loss = read_state(folder).val_loss
    except UserError as error:
        return False, f"{folder.name}  damaged  {error}"
    measured = "not validated" if loss is None else f"validation loss {loss:.4f}"
    return True, f"{folder.name}  good     {measured}"


def told_of_best(run_dir: Path) -> str:
    best = best_checkpoint(run_dir)
    if best is None:
        return ""
    return f"; best: {best.name}" + ("" if verdict(best)[0] else ", which is damaged")


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    run_dir = Path(options.run) if options.run is not None else newest_run()
    find_checkpoint(run_dir)  # tells where there is none
    verdicts = [verdict(folder) for folder in checkpoints(run_dir)]
    print("\n".join(line for _, line in verdicts))
    good, _ = last_good(run_dir)
    damaged = sum(not whole for whole, _ in verdicts)
    if good is None:
        raise UserError(f"{run_dir}: all its checkpoints are damaged; train anew", DATA)
    print(f"last good: {good.name}{told_of_best(run_dir)}")
    require_own(good, load_config(run_dir / "config.yaml"))
    if damaged:
        resume = f"python scripts/train.py --resume {shlex.quote(str(run_dir))}"
        reason = f"{damaged} of {len(verdicts)} checkpoints damaged; {resume} goes on from the last"
        raise UserError(f"{run_dir}: {reason} good one", DATA)
    print(f"all {len(verdicts)} checkpoints of {run_dir} are whole")


if __name__ == "__main__":
    run_command(main)
