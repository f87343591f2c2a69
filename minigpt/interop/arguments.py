"""The command line of scripts/convert.py: what comes in, or what goes out and as what.

arguments -> options
"""

import argparse
import re
from pathlib import Path

from minigpt.errors import UserError
from minigpt.options import Parser
from minigpt.saved_runs import find_checkpoint, newest_run, next_name

NO_ENDING = re.compile(r"(\.(gguf|onnx|v?\d\w*))?")  # a folder may be called gpt-1.5
EXAMPLES = """\
  python scripts/convert.py import gpt2
  python scripts/convert.py import models/my-gpt2 runs/mine
  python scripts/convert.py import nanogpt.safetensors runs/nano --characters input.txt
  python scripts/convert.py export runs/stories-1 out/stories
  python scripts/convert.py export runs/stories-1 stories.gguf
  python scripts/convert.py export runs/stories-1 stories.onnx

What goes in and out, and what can't, is in docs/interop.md.
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options by name, with paths in place; raises UserError for a mistake."""
    parser = Parser(
        "convert.py",
        description="Takes models of others in, and gives runs out.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="import|export")
    add = verbs.add_parser("import", help="a GPT-2 or a nanoGPT model as a run").add_argument
    add("source", help="folder, name on the hub, or nanoGPT's weights as FILE.safetensors")
    add(
        "run",
        nargs="?",
        type=Path,
        metavar="RUN",
        help="the new run; default: the next runs/NAME-N",
    )
    add = verbs.choices["import"].add_mutually_exclusive_group().add_argument
    add("--tokenizer", choices=["gpt2", "byte"], help="of a nanoGPT model; default: gpt2")
    add("--characters", type=Path, metavar="FILE", help="nanoGPT's text, if tokens are characters")
    add = verbs.add_parser("export", help="a run for transformers, llama.cpp or ONNX").add_argument
    add("run", metavar="RUN", help="run directory, or newest")
    add("out", type=Path, metavar="OUT", help="a folder for transformers, FILE.gguf or FILE.onnx")
    add("--checkpoint", default="best", metavar="best|last|STEP", help="default: best")
    options = parser.parse_args(arguments)
    if options.verb == "import":
        options.run = options.run or next_name(Path(options.source).stem)
    else:
        options.run = newest_run() if options.run == "newest" else Path(options.run)
        if not NO_ENDING.fullmatch(options.out.suffix):
            message = f"{options.out}: {options.out.suffix} is no format to export to; allowed: "
            raise UserError(f"{message}.gguf, .onnx, or a folder, whose name has no such ending")
        find_checkpoint(options.run, options.checkpoint)
    return options
