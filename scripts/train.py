"""Trains a model: python scripts/train.py [CONFIG.yaml] [key=value ...] [--resume [RUN]]"""

from pathlib import Path
from typing import TYPE_CHECKING

from minigpt.errors import run_command  # the others later: run_command answers Ctrl-C in one line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minigpt.config import Config
    from minigpt.data import Corpus
    from minigpt.train_arguments import TrainArguments
    from minigpt.trainer import Observer


def main(arguments: list[str]) -> int:
    from minigpt.train_arguments import parse_train_arguments

    asked = parse_train_arguments(arguments)
    corpus = open_corpus(asked.config, asked.resume)
    if asked.dry_run:
        from minigpt.dry_run import describe

        print(describe(asked.config, corpus))
        return 0
    return start(asked, corpus)


def open_corpus(config: "Config", resume: Path | None = None) -> "Corpus":
    """The one place that knows both kinds of corpus."""
    if config.data.source == "stories":
        from minigpt.stories.corpus import open_stories

        return open_stories(config)
    from minigpt.starting_point import tokenizer_of
    from minigpt.text import open_text

    return open_text(config, tokenizer=tokenizer_of(config, resume))


def start(asked: "TrainArguments", corpus: "Corpus") -> int:
    from minigpt.device import choose_device  # only now: PyTorch takes seconds to import
    from minigpt.run_directory import closing_words
    from minigpt.saved_runs import next_name
    from minigpt.trainer import train

    choose_device(asked.config.device)  # raises UserError before there is a folder for the run
    run_dir = asked.resume or Path(asked.config.run_dir or next_name(asked.name))
    resume, observers = asked.resume is not None, list(who_looks_on(asked.config, run_dir))
    exit_code = train(asked.config, corpus, run_dir, resume, observers)
    print(closing_words(run_dir, exit_code))
    return exit_code


def who_looks_on(config: "Config", run_dir: Path) -> "Iterator[Observer]":
    """For stories, where it is known what heads should find, their scores are kept."""
    if config.data.source == "stories":
        from minigpt.heads.history import Recorder

        yield Recorder(run_dir, config)


if __name__ == "__main__":
    run_command(main)
