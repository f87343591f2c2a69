"""Settings from a YAML file and the command line, each read by what its field means.

`1e3` is a whole number where a number of steps is asked for, and a folder's name where a folder
is. A mistake is told with its place.

file, key=value … -> Config
"""

import difflib
import re
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import ValidationError

from minigpt.config import Config
from minigpt.config_file import FIELDS, Given, complaint, full_key, read_file, written
from minigpt.errors import UserError

NOTHING = {"none", "null", "~", ""}
YES, NO = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
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
    if optional and not given.quoted and text.strip().lower() in NOTHING:
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


READERS: dict[Any, Callable[[str], Any]] = {bool: read_bool, int: read_int, float: read_float}


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


# ------------------------------------------------------------------------------ together


def load_config(
    path: Path | None,
    overrides: Iterable[str] = (),
    beneath: Callable[[dict[str, Given]], dict[str, Given]] | None = None,
) -> Config:
    """Defaults, then the file, then `key=value` texts; raises UserError for the first mistake.

    `beneath` may name, from what was given, settings that lie between the defaults and the file.
    """
    given = read_file(Path(path)) if path is not None else {}
    given |= dict(read_override(override) for override in overrides)
    if beneath is not None:
        given = beneath(given) | given
    if "data.path" in given and "data.source" not in given:
        where = given["data.path"].where
        if str(given["data.path"].text).strip().lower() not in NOTHING:
            given["data.source"] = Given("text", where)
    if str(given.get("data.source", Given("stories", "")).text).strip() == "stories":
        # With many heads the first layer stirs all words together, and nobody looks one up later.
        given.setdefault("model.first_layer_heads", Given("2", "stories"))
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
    return list(written(node, f"command line: {name}")) if node is not None else []


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
    name = ".".join(part for part in first["loc"] if isinstance(part, str))
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


class PlainDumper(yaml.SafeDumper):
    """Writes YAML whose texts are quoted where they could be taken for nothing or be changed."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        unsafe = data.strip().lower() in NOTHING or not data.isprintable()
        style = '"' if unsafe else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


PlainDumper.add_representer(str, PlainDumper.represent_str)


def dump_yaml(config: Config) -> str:
    """All settings as YAML that `load_config` reads back to the same config."""
    return yaml.dump(
        config.model_dump(), Dumper=PlainDumper, sort_keys=False, allow_unicode=True, width=100
    )
