"""Makes one HTML file with the live model in it: python scripts/explore.py [RUN] [--help]"""

from minigpt.errors import run_command
from minigpt.explorer.arguments import parse


def main(arguments: list[str]) -> None:
    options = parse(arguments)  # mistakes before PyTorch, which takes seconds to import
    from minigpt.checkpoint import load_run
    from minigpt.explorer.build import build, closing_words

    run = load_run(options.run, options.checkpoint)
    size = build(run, options.out, fast=options.fast, full=options.full)
    print(closing_words(run, options.out, size))


if __name__ == "__main__":
    run_command(main)
