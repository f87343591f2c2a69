"""Editors are told the settings as they are: every config passes, and typing mistakes don't."""

import json

import pytest
import yaml
from conftest import REPOSITORY, run_script
from jsonschema import Draft7Validator

from minigpt.command_line import dump_yaml, load_config
from minigpt.config import Config
from minigpt.config_file import FIELDS

CONFIGS = sorted((REPOSITORY / "configs").glob("*.yaml"))
SCHEMA = json.loads((REPOSITORY / "configs" / "schema.json").read_text(encoding="utf-8"))


def mistakes(text: str) -> list[str]:
    found = Draft7Validator(SCHEMA).iter_errors(yaml.safe_load(text))
    return [error.message for error in found]


def test_the_schema_is_current(tmp_path):
    assert run_script("make_schema.py", "--output=s.json", cwd=tmp_path).returncode == 0
    made = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert made == SCHEMA, "run python scripts/make_schema.py"
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_names_the_schema_and_passes(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=schema.json\n")
    assert mistakes(text) == []


def test_every_setting_is_explained_with_its_default():
    for name in FIELDS:
        place = SCHEMA
        for part in name.split("."):
            place = place["properties"][part]
        assert len(place["description"]) > 8
        assert "default" in place


ALLOWED = [
    "",
    "train:",
    "max_steps: 5",
    "train: {max_steps: 1.0e+3}",
    "train: {grad_clip: None}",
    "train: {grad_clip: ~}",
    "run_dir: 12",
    "compile: no",
    "compile: 'on'",
    "model: {bias: yes, pruned: [L0H1]}",
    "sample: {prompt: 123, stop: The End, top_k: none}",
    "sample: {stop: [a, b]}",
]
WRONG = [
    "n_layer: 3",
    "model: {num_layer: 3}",
    "model: {num_layers: two}",
    "model: {num_layers: 0}",
    "model: {num_layers: null}",
    "model: {bias: perhaps}",
    "model: {pruned: [first]}",
    "train: {schedule: cosin}",
    "train: {learning_rate: -1}",
    "data: {val_fraction: 1}",
    "device: gpu",
    "seed: [1]",
    "- a",
]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_we_read_is_allowed(tmp_path, text):
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    load_config(tmp_path / "a.yaml")
    assert mistakes(text) == []


@pytest.mark.parametrize("text", WRONG)
def test_what_we_refuse_is_marked(tmp_path, text):
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(Exception, match="a.yaml"):
        load_config(tmp_path / "a.yaml")
    assert mistakes(text)


def test_what_a_run_keeps_passes():
    assert mistakes(dump_yaml(Config())) == []
