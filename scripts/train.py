"""Trains a model: python scripts/train.py [CONFIG.yaml] [key=value ...] [--resume [RUN]]"""

from pathlib import Path
from typing import TYPE_CHECKING

from minigpt import distributed  # the others later: it answers Ctrl-C in one line

if TYPE_CHECKING:
    from minigpt.data import Corpus
    from minigpt.train_arguments import TrainArguments


def main(arguments: list[str]) -> int:
    from minigpt.train_arguments import parse_train_arguments

    asked = parse_train_arguments(arguments)
    from minigpt.library import open_corpus
    from minigpt.loggers import require_loggers

    require_loggers(asked.config)
    with distributed.joined(asked.config):
        corpus = distributed.in_turn(lambda: open_corpus(asked.config, asked.resume))
        if asked.dry_run:
            from minigpt.dry_run import describe

            print(describe(asked.config, corpus))
            return 0
        return start(asked, corpus)


def start(asked: "TrainArguments", corpus: "Corpus") -> int:
    from minigpt.device import choose_device  # only now: PyTorch takes seconds to import
    from minigpt.library import train_and_tell
    from minigpt.run_directory import closing_words
    from minigpt.saved_runs import next_name

    choose_device(asked.config.device)  # raises UserError before there is a folder for the run
    run_dir = asked.resume or Path(
        asked.config.run_dir or distributed.from_first(lambda: str(next_name(asked.name)))
    )
    exit_code = train_and_tell(asked.config, corpus, run_dir, asked.resume is not None)
    if distributed.is_first():
        print(closing_words(run_dir, exit_code))
    return exit_code


if __name__ == "__main__":
    distributed.run_command_together(main)
