"""Training that starts from another run's weights, as fine-tuning does (`init_from`).

The model's settings and the tokenizer are that run's; only dropout may change, and the context
may shrink, or with rotary positions be any.

settings, run directory -> settings, tokenizer
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from minigpt.command_line import NOTHING, load_config
from minigpt.config import Config
from minigpt.config_file import Given, complaint, read_file
from minigpt.errors import UserError
from minigpt.saved_runs import find_checkpoint, verify

if TYPE_CHECKING:
    from minigpt.tokenizer import Tokenizer

FREE = {"dropout", "context_length"}
IMPORT = "one of another project comes in with python scripts/convert.py import"


def load_settings(path: Path | None, overrides: Iterable[str] = ()) -> Config:
    """As `load_config`, with the model's settings of the run that `init_from` names."""
    config = load_config(path, overrides, model_settings)
    require_same_model(config)
    return config


def model_settings(given: dict[str, Given]) -> dict[str, Given]:
    """The model's settings of the run that `init_from` names; raises UserError."""
    start = given.get("init_from")
    if start is None or str(start.text).strip().lower() in NOTHING:
        return {}
    run_dir = Path(str(start.text))
    try:
        verify(find_checkpoint(run_dir))
        theirs = read_file(run_dir / "config.yaml")
    except UserError as error:
        raise UserError(f"init_from: {error}; {IMPORT}", error.exit_code) from None
    return {name: value for name, value in theirs.items() if name.startswith("model.")}


def require_same_model(config: Config) -> None:
    """Raises UserError for the first setting in which the weights would not fit."""
    if config.init_from is None:
        return
    theirs = load_config(Path(config.init_from) / "config.yaml").model
    ours = config.model
    for name, value in theirs.model_dump().items():
        mine = getattr(ours, name)
        if name not in FREE and mine != value:
            what = f"{mine}, but the weights of {config.init_from} are for {value}"
            raise complaint(f"model.{name}", f"{what}; leave it out")
    if ours.positions == "learned" and ours.context_length > theirs.context_length:
        what = f"{ours.context_length}, but {config.init_from} has learned {theirs.context_length}"
        raise complaint("model.context_length", f"{what} positions; at most that is allowed")


def require_same_tokenizer(config: Config, tokenizer: "Tokenizer") -> None:
    """Raises UserError where ids would mean other tokens than the weights have learned."""
    if config.init_from is None:
        return
    theirs = load_tokenizer(Path(config.init_from))
    if theirs.fingerprint != tokenizer.fingerprint:
        what = f"{tokenizer.kind}, {tokenizer.vocab_size} tokens, is not that of {config.init_from}"
        advice = f"{theirs.kind}, {theirs.vocab_size} tokens; give a text, and leave it out"
        raise complaint("data.tokenizer", f"{what}: {advice}")


def tokenizer_of(config: Config, resume: Path | None = None) -> "Tokenizer | None":
    """The tokenizer that comes with the weights, or None where it is made for the text.

    A run that goes on has its own copy. Raises UserError where another kind was asked for.
    """
    if config.init_from is None:
        return None
    found = load_tokenizer(resume or Path(config.init_from))
    if config.data.tokenizer not in ("auto", found.kind):
        what = f"{config.data.tokenizer}, but {config.init_from} has learned {found.kind} tokens"
        raise complaint("data.tokenizer", f"{what}; leave it out")
    return found


def load_tokenizer(run_dir: Path) -> "Tokenizer":
    from minigpt.tokenizer import Tokenizer  # not needed for --help, which so stays quick

    return Tokenizer.load(run_dir / "tokenizer.json")
