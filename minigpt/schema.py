"""The settings as a JSON schema, by which editors complete, explain and check a config.

It allows what `load_config` allows: `None` written out, yes and no, one text for a list of one,
and a setting's last word alone where only one setting ends in it.

Config -> configs/schema.json
"""

from typing import Any

from minigpt.command_line import unwrapped
from minigpt.config import GROUPS, Config
from minigpt.config_file import FIELDS, full_key

NONE = {"enum": [None, "None", "none", "null", "~", ""]}
YES_OR_NO = {"enum": [True, False, "yes", "no", "on", "off"]}


def schema() -> dict[str, Any]:
    """The schema of a config file, as a value for JSON."""
    groups = {name: group_schema(name) for name in GROUPS if name}
    short = {name.split(".")[-1]: name for name in FIELDS if "." in name}
    short = {last: name for last, name in short.items() if is_enough(last, name)}
    alone = {last: setting_schema(name) for last, name in sorted(short.items())}
    own = {name: setting_schema(name) for name in FIELDS if "." not in name}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "minigpt config",
        "description": Config.__doc__,
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": own | groups | alone,
    }


def is_enough(last: str, name: str) -> bool:
    others = [other for other in FIELDS if other.split(".")[-1] == last]
    return others == [name] and full_key(last, "") == name


def group_schema(group: str) -> dict[str, Any]:
    names = [name for name in FIELDS if name.startswith(f"{group}.")]
    return {
        "description": GROUPS[group].__doc__,
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {name.split(".")[-1]: setting_schema(name) for name in names},
    }


def setting_schema(name: str) -> dict[str, Any]:
    """What pydantic says of a setting, and what a person may write for the same."""
    group, _, last = name.rpartition(".")
    own = GROUPS[group].model_json_schema()["properties"][last]
    kinds, optional = unwrapped(FIELDS[name])
    allowed = [one for one in own.pop("anyOf", None) or [limits(own)] if one != {"type": "null"}]
    if bool in kinds:
        allowed = [YES_OR_NO]
    if "on" in allowed[0].get("enum", ()):
        allowed.append(YES_OR_NO)
    if str in kinds:  # every word is text, also one that YAML takes for a number
        allowed = [{"type": ["number", "boolean"]}, *allowed]
    if list in kinds:
        allowed.append({"type": "string"})
    allowed += [NONE] if optional else []
    told = {"description": own["description"], "default": own.get("default")}
    return told | (allowed[0] if len(allowed) == 1 else {"anyOf": allowed})


def limits(own: dict[str, Any]) -> dict[str, Any]:
    return {key: own[key] for key in own if key not in ("title", "description", "default")}
