"""Shows what a model's attention heads look at: python scripts/inspect_heads.py [RUN] [--help]"""

import sys
from pathlib import Path

from minigpt.console import escape_what_cannot_be_shown
from minigpt.errors import run_command
from minigpt.heads.arguments import parse, read_text


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    text = read_text(options.text) if options.text is not None else None
    escape_what_cannot_be_shown()
    from minigpt.checkpoint import load_run, newest_run  # only now: PyTorch takes seconds to import
    from minigpt.heads.files import write_files
    from minigpt.heads.inspection import inspect
    from minigpt.heads.report import as_json, report

    run = load_run(options.run or newest_run(), options.checkpoint)
    inspection = inspect(run, text, options.head, options.fast)
    folder = Path(options.out or run.run_dir / "heads")
    files = write_files(inspection, folder, Path(options.csv) if options.csv else None)
    print(as_json(inspection, files) if options.json else report(inspection, files, sys.stdout))


if __name__ == "__main__":
    run_command(main)
