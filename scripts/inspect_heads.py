"""Shows what a model's attention heads look at: python scripts/inspect_heads.py [RUN] [--help]"""

import sys
from pathlib import Path

from minigpt.console import escape_what_cannot_be_shown
from minigpt.errors import run_command
from minigpt.heads.arguments import parse, read_text
from minigpt.saved_runs import find_checkpoint, newest_run


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    text = read_text(options.text) if options.text is not None else None
    run_dir = Path(options.run or newest_run())
    find_checkpoint(run_dir, options.checkpoint)  # mistakes before PyTorch, which takes seconds
    escape_what_cannot_be_shown()
    from minigpt.checkpoint import load_run
    from minigpt.heads.inspection import inspect, write_files
    from minigpt.heads.report import as_json, report

    run = load_run(run_dir, options.checkpoint)
    inspection = inspect(run, text, options.head)
    folder = Path(options.out or run.run_dir / "heads")
    files = write_files(inspection, folder, Path(options.csv) if options.csv else None)
    print(as_json(inspection, files) if options.json else report(inspection, files, sys.stdout))


if __name__ == "__main__":
    run_command(main)
