"""The words after `scripts/train.py`: a config, settings, and what to do with them.

arguments -> TrainArguments
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minigpt.command_line import load_config, unwrapped
from minigpt.config import GROUPS, Config
from minigpt.config_file import FIELDS, complaint, full_key
from minigpt.starting_point import load_settings

USAGE = """\
usage: python scripts/train.py [CONFIG.yaml] [key=value ...] [--resume [RUN]] [--dry-run]

Trains a model. Without arguments: a small GPT on generated stories, in about three minutes.

  CONFIG.yaml       settings from a file, such as configs/shakespeare.yaml
  key=value         a setting, such as max_steps=500 or data.path=my.txt; the last word of a
                    name is enough where only one setting ends in it; --key value works too
  --resume [RUN]    go on with a run that was stopped, the newest if none is given
  --dry-run         say what would be trained: sizes, memory, every setting
  --debug           show where in the code an error arose
  --help            this text

Settings, their defaults and what they are for (where None is allowed, None turns it off):
"""


@dataclass(frozen=True)
class TrainArguments:
    """What was asked for; `resume` is the run to go on with, `name` what a new run is called."""

    config: Config
    name: str
    resume: Path | None = None
    dry_run: bool = False


def parse_train_arguments(arguments: list[str]) -> TrainArguments:
    """Prints the help and exits where it is asked for; raises UserError for a mistake."""
    if {"--help", "-h"} & set(arguments):
        print(help_text())
        sys.exit(0)
    file, overrides, resume, dry_run = None, [], None, False
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--dry-run":
            dry_run = True
        elif word == "--resume" or word.startswith("--resume="):
            resume = word.partition("=")[2] or next_value(rest) or "newest"
        elif word.startswith("--"):
            overrides.append(option(word[2:], rest))
        elif "=" in word:
            overrides.append(word)
        elif file is None and word.lower().endswith((".yaml", ".yml")):
            file = Path(word)
        else:
            raise complaint(f"command line: {word}", advice_for(word, file))
    if resume is not None:
        return resumed(resume, file, overrides, dry_run)
    config = load_settings(file, overrides)
    return TrainArguments(config, run_name(file, config), None, dry_run)


def next_value(rest: list[str]) -> str | None:
    """The next word, if it is neither an option nor a setting."""
    if rest and not rest[0].startswith("--") and ("=" not in rest[0] or Path(rest[0]).exists()):
        return rest.pop(0)
    return None


def option(name: str, rest: list[str]) -> str:
    """`--key value`, `--key=value` or `--switch` as `key=value`."""
    if "=" in name:
        return name
    full = full_key(name, "command line")
    if is_switch(full) and (not rest or rest[0].startswith("--") or "=" in rest[0]):
        return f"{name}=on"
    if not rest:
        raise complaint(f"command line: --{name}", "a value is missing; write --key value")
    return f"{name}={rest.pop(0)}"


def is_switch(full: str) -> bool:
    kinds, _ = unwrapped(FIELDS[full])
    return full == "compile" or kinds == [bool]


def advice_for(word: str, file: Path | None) -> str:
    if file is not None:
        return f"not understood; {file} is the config already, settings look like key=value"
    if Path(word).is_file():
        return f"is no YAML file; to train on a text, write data.path={word}"
    return "not understood; give CONFIG.yaml, key=value or an option of --help"


def resumed(resume: str, file: Path | None, overrides: list[str], dry_run: bool) -> TrainArguments:
    """Settings of a run that exists, changed by what is given now."""
    from minigpt.saved_runs import newest_run

    run_dir = newest_run() if resume == "newest" else Path(resume)
    if not (run_dir / "config.yaml").is_file():
        raise complaint(f"--resume {run_dir}", "is no run; give a folder such as runs/stories-1")
    config = load_config(file or run_dir / "config.yaml", overrides)
    return TrainArguments(config, run_dir.name, run_dir, dry_run)


def run_name(file: Path | None, config: Config) -> str:
    """What a new run is called: like its config, or like its text."""
    if file is not None:
        return file.stem
    return Path(str(config.data.path)).stem if config.data.path else "stories"


# ------------------------------------------------------------------------------ help


def help_text() -> str:
    parts = [USAGE]
    for group, schema in GROUPS.items():
        rows = [
            help_row(f"{group}.{name}" if group else name, field)
            for name, field in schema.model_fields.items()
            if name not in GROUPS
        ]
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts).rstrip()


def help_row(name: str, field: Any) -> str:
    kinds, optional = unwrapped(field.annotation)
    kind = " or ".join(kind_name(kind) for kind in kinds) + (" or None" if optional else "")
    default = '""' if field.default == "" else field.default
    left = f"  {name}={default}"
    return f"{left:<36} {field.description} [{kind}]"


def kind_name(kind: Any) -> str:
    names = {int: "whole number", float: "number", bool: "yes or no", str: "text", list: "list"}
    return names[kind] if kind in names else "|".join(kind.__args__)
