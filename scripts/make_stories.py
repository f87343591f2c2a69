"""Tells stories: python scripts/make_stories.py [--count N] [--seed N] [--split S] [--output F]"""

from pathlib import Path

from minigpt.errors import UserError, run_command
from minigpt.options import Parser

SPLITS = {
    "train": "as trained on",
    "val": "like those, but others",
    "val-new": "names and things bound as never in training",
    "val-far": "longer ones",
    "val-trap": "only those where what is nearest is often wrong",
}


def main(arguments: list[str]) -> None:
    parser = Parser(description="Tells stories from the generator that the default run learns.")
    parser.add_argument("--count", type=int, default=10, help="how many (default 10)")
    parser.add_argument("--seed", type=int, default=1337, help="which ones (default 1337)")
    parser.add_argument("--split", choices=SPLITS, default="train", help=f"kind: {SPLITS}")
    parser.add_argument("--output", type=Path, help="a file to write them to, one a line")
    asked = parser.parse_args(arguments)
    if asked.count < 1:
        raise UserError(f"--count: {asked.count}: at least 1 is allowed; give another number")
    from minigpt.storage import write_text
    from minigpt.stories.corpus import story_text

    stories = (story_text(asked.split, asked.seed, index) for index in range(asked.count))
    if asked.output is None:
        for story in stories:
            print(story)
        return
    write_text(asked.output, "".join(f"{story}\n" for story in stories))
    print(f"made {asked.output} with {asked.count} stories; train on it, if you like, with")
    print(f"  python scripts/train.py data.path={asked.output}")


if __name__ == "__main__":
    run_command(main)
