"""Runs the reliability battery and makes RELIABILITY.md: python scripts/reliability.py [--quick]"""

import sys
from pathlib import Path

from minigpt.errors import run_command

TESTS = Path(__file__).parent.parent / "tests"


def main(arguments: list[str]) -> int:
    sys.path.insert(0, str(TESTS))
    from reliability.report import report  # type: ignore[import-not-found]

    return report(arguments)


if __name__ == "__main__":
    run_command(main)
