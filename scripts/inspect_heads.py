"""Shows what a model's attention heads do: python scripts/inspect_heads.py [RUN] [--help]"""

from minigpt.console import escape_what_cannot_be_shown
from minigpt.errors import run_command
from minigpt.heads.arguments import parse


def main(arguments: list[str]) -> None:
    options = parse(arguments)  # mistakes before PyTorch, which takes seconds to import
    escape_what_cannot_be_shown()
    from minigpt.heads import commands

    if options.compare:
        print(commands.compare_two(options))
    elif options.prune:
        print(commands.prune(options))
    else:
        print(commands.look(options))


if __name__ == "__main__":
    run_command(main)
