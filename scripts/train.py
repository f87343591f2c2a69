"""Trains a model: python scripts/train.py [CONFIG.yaml] [key=value ...] [--resume [RUN]]"""

from pathlib import Path
from typing import TYPE_CHECKING

from minigpt import distributed  # the others later: it answers Ctrl-C in one line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minigpt.config import Config
    from minigpt.data import Corpus
    from minigpt.train_arguments import TrainArguments
    from minigpt.trainer import Observer


def main(arguments: list[str]) -> int:
    from minigpt.train_arguments import parse_train_arguments

    asked = parse_train_arguments(arguments)
    with distributed.joined(asked.config):
        corpus = distributed.in_turn(lambda: open_corpus(asked.config))
        if asked.dry_run:
            from minigpt.dry_run import describe

            print(describe(asked.config, corpus))
            return 0
        return start(asked, corpus)


def open_corpus(config: "Config") -> "Corpus":
    """The one place that knows both kinds of corpus."""
    if config.data.source == "stories":
        from minigpt.stories.corpus import open_stories

        return open_stories(config)
    from minigpt.text import open_text

    return open_text(config)


def start(asked: "TrainArguments", corpus: "Corpus") -> int:
    from minigpt.device import choose_device  # only now: PyTorch takes seconds to import
    from minigpt.run_directory import closing_words
    from minigpt.saved_runs import next_name
    from minigpt.trainer import train

    choose_device(asked.config.device)  # raises UserError before there is a folder for the run
    run_dir = asked.resume or Path(
        asked.config.run_dir or distributed.from_first(lambda: str(next_name(asked.name)))
    )
    resume, observers = asked.resume is not None, list(who_looks_on(asked.config, run_dir))
    exit_code = train(asked.config, corpus, run_dir, resume, observers)
    if distributed.is_first():
        print(closing_words(run_dir, exit_code))
    return exit_code


def who_looks_on(config: "Config", run_dir: Path) -> "Iterator[Observer]":
    """For stories, where it is known what heads should find, their scores are kept."""
    if config.data.source == "stories":
        from minigpt.heads.history import Recorder

        yield Recorder(run_dir, config)


if __name__ == "__main__":
    distributed.run_command_together(main)
