"""Settings mean what a person means, and a mistake is one line that says where and what."""

import subprocess
import sys

import pytest
from conftest import REPOSITORY, TINY, run_script
from hypothesis import given
from hypothesis import strategies as st

from minigpt.command_line import dump_yaml, load_config
from minigpt.config import Config, SampleConfig, TrainConfig
from minigpt.config_file import FIELDS
from minigpt.errors import CONFIG, UserError
from minigpt.foreign_names import FOREIGN
from minigpt.train_arguments import help_text, parse_train_arguments


def from_yaml(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(path)


def complaint_about(tmp_path, text):
    with pytest.raises(UserError) as caught:
        from_yaml(tmp_path, text)
    assert caught.value.exit_code == CONFIG
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "read", "value"),
    [
        ("train:\n  learning_rate: 6e-4", "train.learning_rate", 6e-4),
        ("train:\n  max_steps: 1e3", "train.max_steps", 1000),
        ("train:\n  grad_clip: None", "train.grad_clip", None),
        ("train:\n  grad_clip: ~", "train.grad_clip", None),
        ("train:\n  grad_clip:", "train.grad_clip", None),
        ("seed: 017", "seed", 17),
        ("seed: 0o17x", None, None),
        ("run_dir: no", "run_dir", "no"),
        ("run_dir: 12:30:45", "run_dir", "12:30:45"),
        ("run_dir: 'C:\\runs\\a b'", "run_dir", "C:\\runs\\a b"),
        ("compile: no", "compile", "off"),
        ("compile: true", "compile", "on"),
        ("model:\n  bias: yes", "model.bias", True),
        ("model:\n  bias: off", "model.bias", False),
        ("sample:\n  prompt: 123", "sample.prompt", "123"),
        ("sample:\n  prompt: null", "sample.prompt", "null"),
        ("sample:\n  stop: [a, 'b c']", "sample.stop", ["a", "b c"]),
        ("sample:\n  stop: The End", "sample.stop", ["The End"]),
        ("max_steps: 5", "train.max_steps", 5),
        ("", "seed", 1337),
        ("# only a comment\n", "seed", 1337),
        (b"\xef\xbb\xbfseed: 3", "seed", 3),
        ("seed: 3\r\ncompile: off\r\n", "seed", 3),
        ("train:\n", "seed", 1337),
    ],
)
def test_yaml_means_what_a_person_means(tmp_path, text, read, value):
    if read is None:
        assert complaint_about(tmp_path, text)
        return
    assert value_of(from_yaml(tmp_path, text), read) == value


def value_of(config, name):
    for part in name.split("."):
        config = getattr(config, part)
    return config


WRONG = [
    ("seed: 1\nseed: 2", ["config.yaml:2", "seed", "line 1"]),
    ("model:\n  num_layers: 1\n  num_layers: 1", ["config.yaml:3", "num_layers"]),
    ("max_steps: 5\ntrain:\n  max_steps: 6", ["config.yaml:3", "max_steps"]),
    ("model:\n  num_layers: true", ["config.yaml:2", "model.num_layers", "true", "whole number"]),
    ("model:\n  dropout: false", ["config.yaml:2", "model.dropout", "false", "0"]),
    ("model:\n  n_layer: 3", ["config.yaml:2", "n_layer", "model.num_layers"]),
    ("model:\n  num_layer: 3", ["config.yaml:2", "num_layer", "model.num_layers"]),
    ("modle:\n  num_layers: 3", ["config.yaml:1", "modle"]),
    ("model: 3", ["config.yaml:1", "model"]),
    ("- a\n- b", ["config.yaml:1", "key: value"]),
    ("just words", ["config.yaml:1", "key: value"]),
    ("seed: [1, 2]", ["config.yaml:1", "seed", "list"]),
    ("seed: {a: 1}", ["config.yaml:1", "seed"]),
    ("seed: &a 1\ndata: *a", ["config.yaml:1", "anchor"]),
    ("seed: !!python/object:os.system 1", ["config.yaml:1", "tag"]),
    ("seed:\t1\n\tx: 2", ["config.yaml:1"]),
    ("seed: 'unclosed", ["config.yaml"]),
    ("a: b: c", ["config.yaml:1"]),
    (b"seed: \xff\xfe", ["config.yaml", "UTF-8"]),
    (b"\x00\x01\x02", ["config.yaml"]),
    ("train:\n  learning_rate: abc", ["config.yaml:2", "learning_rate", "'abc'", "number"]),
    ("train:\n  schedule: cosin", ["schedule", "cosin", "cosine"]),
    ("device: gpu", ["config.yaml:1", "device", "cuda"]),
    ("model:\n  embed_dim: 130", ["config.yaml:2", "embed_dim", "130", "4 heads", "128"]),
    ("model:\n  embed_dim: 12", ["embed_dim", "even"]),
    ("train:\n  min_learning_rate: 1", ["config.yaml:2", "min_learning_rate", "0.008"]),
    ("data:\n  source: text", ["data", "path"]),
    ("data:\n  source: stories\n  path: a.txt", ["data", "path"]),
    ("data:\n  tokenizer: char", ["tokenizer", "stories"]),
]
NUMBERS = ["nan", "inf", "-inf", "1e400", "abc", "", "[]", "{}", "1 2", "0x", "true", "--1", "1,5"]
WHOLE = ["model.num_layers", "model.context_length", "train.batch_size", "train.max_steps", "seed"]
REAL = ["train.learning_rate", "model.dropout", "data.val_fraction", "train.weight_decay"]
TOO_FAR = {
    "model.num_layers": ["0", "-1", "1.5", "1e9"],
    "model.num_heads": ["0", "-2", "99999"],
    "model.embed_dim": ["0", "1e12"],
    "model.context_length": ["0", "-5"],
    "model.dropout": ["1", "-0.1", "1.5"],
    "model.feed_forward_multiple": ["0", "-1"],
    "data.vocab_size": ["0", "256", "1e10"],
    "data.val_fraction": ["0", "1", "-0.5"],
    "train.batch_size": ["0", "-3", "2.5"],
    "train.accumulate": ["0"],
    "train.learning_rate": ["0", "-1"],
    "train.warmup_steps": ["-1", "1.5"],
    "train.weight_decay": ["-1"],
    "train.beta1": ["1", "-0.1"],
    "train.beta2": ["1.1"],
    "train.grad_clip": ["-1"],
    "train.patience": ["0"],
    "train.ema": ["1", "0", "2"],
    "train.max_minutes": ["0", "-3"],
    "train.keep": ["0"],
    "sample.temperature": ["-1"],
    "sample.top_k": ["-1", "2.5"],
    "sample.top_p": ["-0.1", "1.1"],
    "sample.min_p": ["2"],
    "sample.num_samples": ["0"],
    "sample.max_new_tokens": ["0"],
    "seed": ["-1", "1.5", "1e30"],
}
PAIRS = [(name, value) for name in WHOLE + REAL for value in NUMBERS]
PAIRS += [(name, value) for name, values in TOO_FAR.items() for value in values]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=range(len(WRONG)))
def test_a_mistake_is_one_line_with_its_place(tmp_path, text, words):
    line = complaint_about(tmp_path, text)
    for word in words:
        assert word in line, line


@pytest.mark.parametrize(("name", "value"), PAIRS)
def test_a_value_that_is_not_allowed_is_named_with_its_place(tmp_path, name, value):
    group, _, last = name.rpartition(".")
    written = f"{group}:\n  {last}: {value}" if group else f"{last}: {value}"
    line = complaint_about(tmp_path, written)
    assert f"config.yaml:{written.count(chr(10)) + 1}" in line
    assert name in line


def test_files_that_are_not_there_are_told_with_the_nearest(tmp_path):
    (tmp_path / "stories.yaml").write_text("")
    with pytest.raises(UserError, match=r"did you mean .*stories\.yaml"):
        load_config(tmp_path / "storys.yaml")
    with pytest.raises(UserError, match="directory"):
        load_config(tmp_path)


@pytest.mark.parametrize("foreign", sorted(FOREIGN))
def test_names_of_other_projects_are_answered_with_ours(foreign):
    assert FOREIGN[foreign] in FIELDS
    if foreign not in {full.split(".")[-1] for full in FIELDS}:
        with pytest.raises(UserError, match=f"did you mean {FOREIGN[foreign]}"):
            load_config(None, [f"{foreign}=1"])


def test_values_may_hold_anything():
    prompt = "a=b: #c 'd' \"e\""
    assert load_config(None, [f"sample.prompt={prompt}"]).sample.prompt == prompt


def test_the_last_one_on_the_command_line_counts():
    assert load_config(None, ["top_k=5", "top_k=None"]).sample.top_k is None
    assert load_config(None, ["top_k=None", "top_k=5"]).sample.top_k == 5


def test_a_path_means_text():
    assert load_config(None, ["data.path=my.txt"]).data.source == "text"
    assert load_config(None, ["data.path=None"]).data.source == "stories"


@pytest.mark.parametrize(
    ("words", "read", "value"),
    [
        (["--max-steps", "5"], "train.max_steps", 5),
        (["--train.max_steps=5"], "train.max_steps", 5),
        (["--compile"], "compile", "on"),
        (["--compile", "seed=2"], "compile", "on"),
        (["--compile=false"], "compile", "off"),
        (["--bias"], "model.bias", True),
        (["--temperature=1"], "sample.temperature", 1.0),
        (["--top-k=None"], "sample.top_k", None),
        (["--prompt=123"], "sample.prompt", "123"),
        (["run_dir=C:\\runs\\a b"], "run_dir", "C:\\runs\\a b"),
    ],
)
def test_options_are_settings_too(words, read, value):
    assert value_of(parse_train_arguments(words).config, read) == value


@pytest.mark.parametrize(
    "words",
    [["--max-steps"], ["novel.txt"], ["a.yaml", "b.yaml"], ["--nonsense=1"], ["x"], ["=3"], [""]],
)
def test_words_that_mean_nothing_are_one_line(words):
    with pytest.raises(UserError) as caught:
        parse_train_arguments(words)
    assert "\n" not in str(caught.value)


def test_an_unknown_option_is_called_so_with_and_without_a_value():
    for words in (["--dryrun"], ["--dryrun", "yes"], ["--dryrun=yes"]):
        with pytest.raises(UserError, match="dryrun: unknown setting"):
            parse_train_arguments(words)


@given(
    st.builds(
        Config,
        run_dir=st.none() | st.sampled_from(["None", "~", "no", "1e3"]) | st.text(min_size=1),
        train=st.builds(
            TrainConfig,
            learning_rate=st.floats(1e-6, 1, exclude_min=True),
            grad_clip=st.none() | st.floats(0.1, 10),
        ),
        sample=st.builds(
            SampleConfig,
            prompt=st.text(),
            top_k=st.none() | st.integers(0, 99),
            stop=st.none() | st.lists(st.text()),
        ),
    )
)
def test_a_dumped_config_reads_back_the_same(tmp_path_factory, config):
    path = tmp_path_factory.mktemp("dump") / "config.yaml"
    path.write_text(dump_yaml(config), encoding="utf-8", newline="")
    assert load_config(path) == config


@pytest.mark.parametrize("path", sorted((REPOSITORY / "configs").glob("*.yaml")))
def test_shipped_configs_are_read_and_repeat_no_default(path):
    config = load_config(path)
    standard = load_config(None, ["data.path=x"] if config.data.path else [])
    text = path.read_text(encoding="utf-8")
    for name in FIELDS:
        last = name.split(".")[-1]
        if f"\n  {last}: " in text and name != "data.source" and name.split(".")[0] in text:
            assert value_of(config, name) != value_of(standard, name), f"{name} is the default"


SETTINGS = {
    "": "run_dir init_from seed device precision threads compile shard",
    "data.": "source path field encoding tokenizer vocab_size val_fraction",
    "model.": "num_layers num_heads embed_dim context_length feed_forward_multiple activation "
    "positions bias dropout tie_embeddings qk_norm first_layer_heads pruned",
    "train.": "max_steps max_minutes batch_size accumulate optimizer learning_rate "
    "min_learning_rate schedule warmup_steps weight_decay beta1 beta2 grad_clip eval_interval "
    "save_interval sample_interval log_interval patience ema keep",
    "sample.": "prompt num_samples max_new_tokens temperature top_k top_p min_p "
    "repetition_penalty stop",
    "log.": "tensorboard wandb wandb_project",
}


def test_settings_keep_the_names_that_configs_and_runs_use():
    assert {group + name for group, names in SETTINGS.items() for name in names.split()} == set(
        FIELDS
    )


def test_help_names_every_setting_with_its_default():
    text = help_text()
    for name in FIELDS:
        assert f"{name}=" in text


QUICK = [["--help"], ["learning_rate=abc"], ["--nonsense"], ["--resume"], ["--resume", "nowhere"]]


@pytest.mark.parametrize("words", QUICK)
def test_help_and_mistakes_do_without_pytorch(tmp_path, words):
    code = (
        "import sys, runpy; sys.argv = ['train.py', *sys.argv[1:]]\n"
        f"try: runpy.run_path({str(REPOSITORY / 'scripts' / 'train.py')!r}, run_name='__main__')\n"
        "finally: assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert "AssertionError" not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == {"--help": 0, "--resume": 3}.get(words[-1], CONFIG)
    assert not list(tmp_path.iterdir())


def test_a_device_that_is_not_there_is_one_line_and_no_run(tmp_path, text_file):
    done = run_script("train.py", f"data.path={text_file}", *TINY, "device=cuda:7", cwd=tmp_path)
    assert done.returncode == CONFIG
    assert len(done.stderr.strip().splitlines()) == 1
    assert "cpu" in done.stderr
    assert not (tmp_path / "runs").exists()
