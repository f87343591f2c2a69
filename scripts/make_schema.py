"""Writes configs/schema.json, by which editors complete and check the files beside it."""

from pathlib import Path

from minigpt.errors import run_command
from minigpt.options import Parser


def main(arguments: list[str]) -> None:
    parser = Parser("make_schema.py", description=__doc__)
    default = Path("configs/schema.json")
    parser.add_argument("--output", type=Path, default=default, metavar="FILE", help=str(default))
    output = parser.parse_args(arguments).output
    from minigpt.schema import schema
    from minigpt.storage import write_json

    write_json(output, schema())
    print(f"made {output}")


if __name__ == "__main__":
    run_command(main)
