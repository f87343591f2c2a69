"""Shows what a model's attention heads do: python scripts/inspect_heads.py [RUN] [--help]"""

import sys

from minigpt.errors import run_command
from minigpt.heads.arguments import parse


def main(arguments: list[str]) -> None:
    options = parse(arguments)  # mistakes before PyTorch, which takes seconds to import
    from minigpt.heads import commands
    from minigpt.heads.terminal import printable

    command = commands.look
    if options.compare:
        command = commands.compare_two
    elif options.prune is not None:
        command = commands.prune
    elif options.relation:
        command = commands.one_relation
    print(printable(command(options), sys.stdout))


if __name__ == "__main__":
    run_command(main)
