"""What a program, a notebook or a script asks of the whole: a corpus opened, a model trained.

The only module of the package that knows both kinds of corpus and who may look on.

config -> corpus -> run directory
"""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from minigpt import distributed
from minigpt.config import Config
from minigpt.data import Corpus
from minigpt.starting_point import load_settings

if TYPE_CHECKING:
    from minigpt.loggers import Follower
    from minigpt.trainer import Observer


def load_config(path: str | Path | None = None, overrides: Iterable[str] = ()) -> Config:
    """Defaults, then a YAML file, then texts such as `max_steps=500`.

    Raises UserError for the first mistake.
    """
    return load_settings(Path(path) if path is not None else None, overrides)


def open_corpus(config: Config, resume: Path | None = None) -> Corpus:
    """The stories or the text that a config names, as ids; made once and kept in `data/cache`.

    A text is cut as the run `resume` cuts it, or the run that `config.init_from` names. Raises
    UserError where the text can't be read or is too short.
    """
    if config.data.source == "stories":
        from minigpt.stories.corpus import open_stories

        return open_stories(config)
    from minigpt.starting_point import tokenizer_of
    from minigpt.text import open_text

    return open_text(config, tokenizer=tokenizer_of(config, resume))


def train(config: Config, run_dir: str | Path | None = None, resume: bool = False) -> Path:
    """Trains a model as `scripts/train.py` does; -> the folder of the run, for `load_run`.

    Without `run_dir` it is that of the config, else the next `runs/NAME-N`. Raises UserError for
    whatever a user did wrong. Ctrl-C ends a training early, with all that it learned saved.
    """
    from minigpt.saved_runs import next_name

    name = Path(str(config.data.path)).stem if config.data.path else "stories"
    folder = Path(run_dir or config.run_dir or next_name(name))
    corpus = open_corpus(config, folder if resume else None)
    train_and_tell(config, corpus, folder, resume)
    return folder


def train_and_tell(config: Config, corpus: Corpus, run_dir: Path, resume: bool = False) -> int:
    """Trains while those look on whom the settings name; -> exit code."""
    from minigpt.trainer import train

    with contextlib.ExitStack() as stack:
        observers: list[Observer] = list(who_looks_on(config, run_dir))
        if distributed.is_first() and (config.log.tensorboard or config.log.wandb):
            observers.append(stack.enter_context(follower(config, corpus, run_dir, resume)))
        return train(config, corpus, run_dir, resume, observers)


def who_looks_on(config: Config, run_dir: Path) -> "Iterator[Observer]":
    """For stories, where it is known what heads should find, their scores are kept."""
    if config.data.source == "stories":
        from minigpt.heads.history import Recorder

        yield Recorder(run_dir, config)


def follower(config: Config, corpus: Corpus, run_dir: Path, resume: bool) -> "Follower":
    """Tells other tools, and shows them the heads on the beginning of the validation split."""
    from minigpt.heads.snapshot import MOST_TOKENS, draw_heads
    from minigpt.loggers import Follower, open_loggers

    ids = corpus.val.ids[: min(config.model.context_length, MOST_TOKENS)].tolist()
    loggers = open_loggers(config, run_dir, resume)
    title = f"{run_dir}, the beginning of the validation split"
    return Follower(
        run_dir,
        loggers,
        lambda model: draw_heads(model, corpus.tokenizer, ids, title).png(),
        config.train.sample_interval,
    )
