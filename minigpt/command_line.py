"""Settings from a YAML file and the command line, each read by what its field means.

YAML's own guesses (`no` is false, `1e-3` is text, `017` is 15) are not asked: every value is
taken as it was written and read by the type of its field. A mistake is told with its place.

file, key=value … -> Config
"""

import difflib
import re
import types
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import ValidationError

from minigpt.config import GROUPS, Config
from minigpt.errors import CONFIG, UserError
from minigpt.foreign_names import FOREIGN

NOTHING = {"none", "null", "~", ""}
YES, NO = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
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


# ------------------------------------------------------------------------------ values


def read_value(given: Given, annotation: Any) -> Any:
    """The value that a written text means for a field of this type; ValueError if none."""
    kinds, optional = unwrapped(annotation)
    text = given.text
    if list in kinds:
        if isinstance(text, str) and text.strip().lower() in NOTHING:
            return None
        return text if isinstance(text, list) else [text]
    if isinstance(text, list):
        raise ValueError("is a list, and one value is allowed")
    if optional and text.strip().lower() in NOTHING:
        return None
    for kind in kinds:
        if kind is not str:
            return READERS[kind](text) if kind in READERS else read_choice(text, kind)
    return text


def unwrapped(annotation: Any) -> tuple[list[Any], bool]:
    """The plain types or choices inside an annotation, and whether None is among them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return unwrapped(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        parts = [unwrapped(part) for part in get_args(annotation) if part is not type(None)]
        return [kind for kinds, _ in parts for kind in kinds], type(None) in get_args(annotation)
    return ([list] if origin is list else [annotation]), False


def read_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in YES | NO:
        return word in YES
    raise ValueError(f"{text!r} is not yes or no; true and false are allowed")


def read_int(text: str) -> int:
    try:
        return int(text.strip(), 10)
    except ValueError:
        pass
    number = read_float(text, "a whole number")
    if not number.is_integer():
        raise ValueError(f"{text!r} is not a whole number")
    return int(number)


def read_float(text: str, wanted: str = "a number") -> float:
    try:
        number = float(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is not {wanted}{off_advice(text)}") from None
    if number - number != 0:
        raise ValueError(f"{text!r} is not a finite number")
    return number


def off_advice(text: str) -> str:
    return "; 0 or None turns it off, where it can be" if text.strip().lower() in YES | NO else ""


READERS = {bool: read_bool, int: read_int, float: read_float}


def read_choice(text: str, choice: Any) -> str:
    allowed = list(get_args(choice)) if get_origin(choice) is Literal else []
    word = text.strip().lower()
    for words, meaning in ((YES, "on"), (NO, "off")):
        if word in words and meaning in allowed:
            return meaning
    if word not in allowed:
        near = difflib.get_close_matches(word, allowed, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"{text!r} is unknown; allowed: {', '.join(allowed)}{hint}")
    return word


# ------------------------------------------------------------------------------ files


def read_file(path: Path) -> dict[str, Given]:
    """The settings of a YAML file by their full names; raises UserError with file and line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
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
    return dict(settings_in(path, root)) if root is not None else {}


def refuse_aliases(path: Path, text: str) -> None:
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        tag = getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise complaint(f"{path}:{line}", "anchors are not allowed; write the value out")
        if tag and tag not in ("!", "tag:yaml.org,2002:str"):
            raise complaint(f"{path}:{line}", f"the tag {tag} is not allowed; remove it")


def settings_in(path: Path, node: yaml.Node, group: str = "") -> Iterable[tuple[str, Given]]:
    if not isinstance(node, yaml.MappingNode):
        line = node.start_mark.line + 1
        name = f"{group} needs" if group else "a config is made of"
        raise complaint(f"{path}:{line}", f"{name} lines like key: value; mend the file")
    seen: dict[str, int] = {}
    for key_node, value in node.value:
        line = key_node.start_mark.line + 1
        key = f"{group}.{key_node.value}" if group else str(key_node.value)
        where = f"{path}:{line}"
        if not group and key in GROUPS and key:
            name = key
            if not (isinstance(value, yaml.ScalarNode) and not value.value):
                yield from settings_in(path, value, key)
        else:
            name = full_key(key, where)
            yield name, Given(written(value, f"{where}: {name}"), f"{where}: {name}")
        if name in seen:
            raise complaint(f"{where}: {name}", f"given twice, first in line {seen[name]}; keep one")
        seen[name] = line


def written(node: yaml.Node, where: str) -> str | list[str]:
    if isinstance(node, yaml.ScalarNode):
        return node.value
    if isinstance(node, yaml.SequenceNode) and all(
        isinstance(item, yaml.ScalarNode) for item in node.value
    ):
        return [item.value for item in node.value]
    raise complaint(where, "is a group of values, and one value is allowed")


# ------------------------------------------------------------------------------ together


def load_config(path: Path | None, overrides: Iterable[str] = ()) -> Config:
    """Defaults, then the file, then `key=value` texts; raises UserError for the first mistake."""
    given = read_file(Path(path)) if path is not None else {}
    given |= dict(read_override(override) for override in overrides)
    if "data.path" in given and "data.source" not in given:
        where = given["data.path"].where
        if str(given["data.path"].text).strip().lower() not in NOTHING:
            given["data.source"] = Given("text", where)
    return build(given)


def read_override(text: str) -> tuple[str, Given]:
    key, equals, value = text.partition("=")
    if not equals:
        raise complaint(f"command line: {text}", "not understood; settings look like key=value")
    name = full_key(key.strip(), "command line")
    if list in unwrapped(FIELDS[name])[0] and value.startswith("["):
        return name, Given(flow_list(value, name), f"command line: {name}")
    return name, Given(value, f"command line: {name}")


def flow_list(text: str, name: str) -> list[str]:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        raise complaint(f"command line: {name}", f"{text!r} is no list like [a, b]") from None
    return list(written(node, f"command line: {name}"))


def build(given: dict[str, Given]) -> Config:
    values: dict[str, Any] = {}
    for name, item in given.items():
        group, _, last = name.rpartition(".")
        try:
            value = read_value(item, FIELDS[name])
        except ValueError as error:
            raise complaint(item.where, str(error)) from None
        (values.setdefault(group, {}) if group else values)[last] = value
    try:
        return Config(**values)
    except ValidationError as error:
        raise explained(error, given) from None


def explained(error: ValidationError, given: dict[str, Given]) -> UserError:
    """The first of pydantic's complaints in our words, with the place of the value."""
    first, *others = error.errors()
    name = ".".join(str(part) for part in first["loc"] if str(part) in GROUPS or isinstance(part, str))
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":  # a check across fields, which names its field itself
        field, _, message = message.partition(": ")
        name = f"{name}.{field}"
    else:
        message = f"{first['input']!r} is not allowed; {lowered(message)}"
    name = next((full for full in FIELDS if name == full or name.startswith(full + ".")), name)
    more = f" (and {len(others)} more)" if others else ""
    where = given[name].where if name in given else name
    return complaint(where, message + more)


def lowered(message: str) -> str:
    message = re.sub(r"^(Input|String|Value) should", "it should", message)
    return message[:1].lower() + message[1:]


def dump_yaml(config: Config) -> str:
    """All settings as YAML that `load_config` reads back to the same config."""
    return yaml.safe_dump(config.model_dump(), sort_keys=False, allow_unicode=True, width=100)
