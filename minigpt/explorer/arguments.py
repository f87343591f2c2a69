"""The command line of scripts/explore.py: which run, and where the page goes.

arguments -> options
"""

import argparse
from pathlib import Path

from minigpt.heads.arguments import find_run
from minigpt.options import Parser

USAGE = "python scripts/explore.py [RUN] [options]"
EXAMPLES = """\
The page opens from disk in any browser, needs no network, and can be sent to others.

  python scripts/explore.py
  python scripts/explore.py runs/stories-1 --out explorer.html
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options by name, `run` the folder of a run that has the checkpoint asked for."""
    parser = Parser(
        usage=USAGE,
        description="Makes one HTML file with the trained model in it, to look inside.",
        epilog=EXAMPLES,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=34, width=100
        ),
    )
    add = parser.add_argument
    add("run", nargs="?", metavar="RUN", help="run directory, or RUN@STEP; default: the newest")
    add("--checkpoint", metavar="best|last|STEP", help="default: best")
    add("--out", metavar="FILE", help="where the page goes; default: RUN/explorer.html")
    add("--fast", action="store_true", help="judge the heads on fewer stories")
    add("--full", action="store_true", help="weights in float32, not 16 bits each: twice the size")
    options = parser.parse_args(arguments)
    options.run, options.checkpoint = find_run(options.run, options.checkpoint)
    options.out = Path(options.out) if options.out else options.run / "explorer.html"
    return options
