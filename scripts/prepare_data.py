"""Gets a text to train on: python scripts/prepare_data.py shakespeare [--from FILE]"""

from pathlib import Path

from minigpt.errors import run_command
from minigpt.options import Parser


def main(arguments: list[str]) -> None:
    asked = parser().parse_args(arguments)
    from minigpt.download import SHAKESPEARE, prepare_shakespeare

    prepare_shakespeare(asked.source)
    print(f"{SHAKESPEARE} is there; train on it with:")
    print("python scripts/train.py configs/shakespeare.yaml")


def parser() -> Parser:
    parser = Parser("prepare_data.py", description="Gets a text to train on.")
    parser.add_argument("name", choices=["shakespeare"], help="tiny Shakespeare, 1.1 MB")
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="FILE",
        help="a copy of it to take instead of the network's",
    )
    return parser


if __name__ == "__main__":
    run_command(main)
