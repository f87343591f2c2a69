"""H: a wrong setting is one line that says where, which, and what is allowed; no run is made."""

import os
import runpy
import signal

import pytest
from conftest import REPOSITORY

from minigpt.command_line import unwrapped
from minigpt.config_file import FIELDS
from minigpt.errors import CONFIG, DATA, run_command

NUMBERS = [n for n in FIELDS if unwrapped(FIELDS[n])[0][0] in (int, float)]
WHOLE = [n for n in FIELDS if unwrapped(FIELDS[n])[0][0] is int]
SWITCHES = [n for n in FIELDS if unwrapped(FIELDS[n])[0] == [bool]]
LONG = [n for n in FIELDS if len(n.rpartition(".")[2]) > 6]


def in_file(name, value):
    group, _, last = name.rpartition(".")
    return f"{group}:\n  {last}: {value}\n" if group else f"{last}: {value}\n"


def swapped(name):
    """The name with two letters in the wrong order, as people type."""
    place = len(name) - 3
    return name[:place] + name[place + 1] + name[place] + name[place + 2 :]


def typos():
    for name in LONG:
        last = name.rpartition(".")[2]
        if swapped(name) not in FIELDS and swapped(last) != last:
            yield in_file(swapped(name), 1), ["c.yaml:", swapped(last), "did you mean", last]


def wrong_types():
    for name in NUMBERS:
        yield in_file(name, "abc"), ["c.yaml:", name, "abc", "number"]
    for name in WHOLE:
        yield in_file(name, "1.5"), ["c.yaml:", name, "1.5", "whole number"]
    for name in SWITCHES:
        yield in_file(name, "maybe"), ["c.yaml:", name, "maybe", "true and false"]


def out_of_range():
    for name in NUMBERS:
        for value in ("-1", "1e999"):
            yield in_file(name, value), ["c.yaml:", name]


OTHERS = [
    ("seed: 1\nseed: 2", ["c.yaml:2", "seed", "twice", "line 1"]),
    ("train:\n  max_steps: 1\n  max_steps: 2", ["c.yaml:3", "train.max_steps", "line 2"]),
    ("model: {num_layers: 1, num_layers: 2}", ["c.yaml:1", "model.num_layers"]),
    ("device: tpu", ["c.yaml:1", "device", "tpu"]),
    ("precision: float8", ["c.yaml:1", "precision", "float8", "bfloat16"]),
    ("train:\n  optimizer: adam", ["c.yaml:2", "adam", "adamw"]),
    ("train:\n  schedule: cosin", ["c.yaml:2", "cosin", "cosine"]),
    ("model:\n  embed_dim: 10\n  num_heads: 3", ["c.yaml:2", "embed_dim", "multiple"]),
    ("model:\n  embed_dim: 12\n  num_heads: 4", ["embed_dim", "odd", "learned"]),
    ("train:\n  learning_rate: 0.1\n  min_learning_rate: 1", ["c.yaml:3", "min_learning_rate"]),
    ("data:\n  source: text", ["data", "path", "missing"]),
    ("data:\n  source: stories\n  path: x", ["stories", "path"]),
    ("data:\n  tokenizer: char", ["tokenizer", "auto, word"]),
    ("model:\n  pruned: [L9H9]", ["pruned", "L9H9", "allowed"]),
    ("model:\n  pruned: [x]", ["c.yaml:2", "pruned"]),
    ("a: b: c", ["c.yaml:1"]),
    ("seed: [1", ["c.yaml:"]),
    ("\tseed: 1", ["c.yaml:1"]),
    ("seed: &x 1", ["c.yaml:1", "anchors"]),
    ("seed: !!python/object/apply:os.system ['touch pwned']", ["c.yaml:1", "tag"]),
    ("seed: 0x10", ["c.yaml:1", "seed", "0x10"]),
    ("seed: 1_0_", ["c.yaml:1", "seed"]),
    ("seed: 12:30:45", ["c.yaml:1", "seed", "12:30:45"]),
    ("train:\n  max_steps: yes", ["c.yaml:2", "train.max_steps", "yes"]),
    ("train:\n  max_steps:", ["c.yaml:2", "train.max_steps"]),
    ("train:\n  max_steps: .inf", ["c.yaml:2", "train.max_steps"]),
    ("- seed: 1", ["c.yaml:1"]),
    ("[" * 3000, ["c.yaml"]),
    ("seed: " + "9" * 9999, ["c.yaml:1", "seed"]),
]


def files():
    yield from typos()
    yield from wrong_types()
    yield from out_of_range()
    yield from OTHERS


COMMANDS = [
    (["max_stesp=1"], ["max_stesp", "max_steps"]),
    (["--max-stesp", "1"], ["max", "max_steps"]),
    (["max_steps=abc"], ["max_steps", "abc"]),
    (["max_steps=-1"], ["max_steps", "-1"]),
    (["--max-steps"], ["max_steps"]),
    (["max_steps"], ["max_steps"]),
    (["nothere.yaml"], ["nothere.yaml", "no such file"]),
    (["c.yam"], ["c.yam"]),
    (["=1"], ["unknown"]),
    (["--resume", "nowhere"], ["nowhere", "is no run"]),
    (["--nonsense=1"], ["nonsense"]),
    (["a.yaml", "b.yaml"], ["b.yaml"]),
    (["device=cuda:x"], ["device", "cuda:x"]),
    (["model.pruned=[L0H0"], ["pruned"]),
]


@pytest.fixture
def train(tmp_path, monkeypatch, capsys):
    """A function that runs scripts/train.py here: train(arguments) -> exit code, stderr."""
    main = runpy.run_path(str(REPOSITORY / "scripts" / "train.py"))["main"]
    monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGTERM)

    def run(arguments):
        monkeypatch.setattr("sys.argv", ["train.py", *arguments])
        with pytest.raises(SystemExit) as end:
            run_command(main)
        return end.value.code, capsys.readouterr().err

    yield run
    signal.signal(signal.SIGTERM, handler)


def check(train, arguments, words):
    code, said = train(arguments)
    assert code in (CONFIG, DATA), f"{arguments}: {code} {said}"
    assert said.startswith("error: ") and said.count("\n") == 1, said
    for word in words:
        assert word in said, f"{arguments}: {word!r} is not in {said}"
    assert not [name for name in os.listdir() if name != "c.yaml"], "something was made"


def test_a_wrong_file_is_one_line(train, tmp_path, record):
    cases = list(files())
    for text, words in cases:
        (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
        print(f"to repeat: {text!r:.200}")
        check(train, ["c.yaml", "--dry-run"], words)
    record("H", len(cases))


@pytest.mark.parametrize(("arguments", "words"), COMMANDS, ids=str)
def test_a_wrong_command_is_one_line(train, record, arguments, words):
    check(train, [*arguments, "--dry-run"], words)
    record("H", 1)
