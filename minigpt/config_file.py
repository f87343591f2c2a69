"""Settings as they were written, by their full names: read from a YAML file, or from `key=value`.

YAML's own guesses (`no` is false, `1e-3` is text, `017` is 15) are not asked: a value stays the
text that somebody wrote, with its place, until its field says what it means.

file, key=value -> {name: Given}
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from minigpt.config import GROUPS
from minigpt.errors import CONFIG, UserError
from minigpt.foreign_names import FOREIGN
from minigpt.storage import read_bytes

QUOTES = ("'", '"')
FIELDS = {
    f"{group}.{name}" if group else name: field.annotation
    for group, schema in GROUPS.items()
    for name, field in schema.model_fields.items()
    if name not in GROUPS
}


@dataclass(frozen=True)
class Given:
    """A value as somebody wrote it, and where."""

    text: str | list[str]
    where: str
    quoted: bool = False


def complaint(where: str, rest: str) -> UserError:
    return UserError(f"{where}: {rest}", CONFIG)


# ------------------------------------------------------------------------------ keys


def full_key(key: str, where: str) -> str:
    """The dotted name of a setting given in full or by its last word; raises UserError."""
    name = key.replace("-", "_")
    if name in FIELDS:
        return name
    owners = [full for full in FIELDS if full.split(".")[-1] == name]
    if len(owners) == 1:
        return owners[0]
    last = name.split(".")[-1]
    right = FOREIGN.get(last.lower()) or nearest(name)
    advice = f"did you mean {right}?" if right else "see python scripts/train.py --help"
    raise complaint(f"{where}: {key}", f"unknown setting; {advice}")


def nearest(name: str) -> str | None:
    words = {full.split(".")[-1]: full for full in FIELDS}
    last = name.split(".")[-1].lower()
    near = difflib.get_close_matches(last, words, n=1, cutoff=0.6)
    return words[near[0]] if near else None


# ------------------------------------------------------------------------------ files


def read_file(path: Path) -> dict[str, Given]:
    """The settings of a YAML file by their full names; raises UserError with file and line."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except FileNotFoundError:
        near = difflib.get_close_matches(path.name, sorted(f.name for f in path.parent.glob("*")))
        hint = f"did you mean {path.parent / near[0]}?" if near else "check the name"
        raise complaint(str(path), f"no such file; {hint}") from None
    except OSError as error:
        raise complaint(str(path), f"{error.strerror}; give a YAML file") from None
    except UnicodeDecodeError as error:
        raise complaint(str(path), f"byte {error.start} is not UTF-8; give a YAML file") from None
    try:
        refuse_aliases(path, text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise complaint(f"{path}:{line}", f"no YAML: {error.problem}; mend the line") from None
    except (yaml.YAMLError, RecursionError) as error:
        reason = getattr(error, "reason", "too deep")
        raise complaint(str(path), f"no YAML: {reason}; give a YAML file") from None
    return dict(settings_in(path, root, "", {})) if root is not None else {}


def refuse_aliases(path: Path, text: str) -> None:
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        tag = getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise complaint(f"{path}:{line}", "anchors are not allowed; write the value out")
        if tag and tag not in ("!", "tag:yaml.org,2002:str"):
            raise complaint(f"{path}:{line}", f"the tag {tag} is not allowed; remove it")


def settings_in(
    path: Path, node: yaml.Node, group: str, seen: dict[str, int]
) -> Iterator[tuple[str, Given]]:
    """The settings of a group by their full names; `seen` are those above and their lines."""
    if not isinstance(node, yaml.MappingNode):
        line = node.start_mark.line + 1
        name = f"{group} needs" if group else "a config is made of"
        raise complaint(f"{path}:{line}", f"{name} lines like key: value; mend the file")
    for key_node, value in node.value:
        line = key_node.start_mark.line + 1
        key = f"{group}.{key_node.value}" if group else str(key_node.value)
        where = f"{path}:{line}"
        if not group and key in GROUPS and key:
            name = key
            if not (isinstance(value, yaml.ScalarNode) and not value.value):
                yield from settings_in(path, value, key, seen)
        else:
            name = full_key(key, where)
            place = f"{where}: {name}"
            quoted = getattr(value, "style", None) in QUOTES
            yield name, Given(written(value, place), place, quoted)
        if name in seen:
            rest = f"given twice, first in line {seen[name]}; keep one"
            raise complaint(f"{where}: {name}", rest)
        seen[name] = line


def written(node: yaml.Node, where: str) -> str | list[str]:
    if isinstance(node, yaml.ScalarNode):
        return node.value
    if isinstance(node, yaml.SequenceNode) and all(
        isinstance(item, yaml.ScalarNode) for item in node.value
    ):
        return [item.value for item in node.value]
    raise complaint(where, "is a group of values, and one value is allowed")
