"""Training that starts from another run's weights: the same model and the same tokens."""

import json
import shutil

import pytest
import torch
from conftest import TEXT, TINY, run_script

from minigpt.checkpoint import load_run
from minigpt.command_line import load_config
from minigpt.errors import UserError
from minigpt.starting_point import model_settings, require_same_model
from minigpt.text import open_text
from minigpt.tokenizer import Tokenizer
from minigpt.trainer import Trainer, train

TRAINING = [setting for setting in TINY if not setting.startswith("model.")]


@pytest.fixture
def home(tmp_path, tiny_run):
    """A folder with the run `first` and another text than it has learned from."""
    shutil.copytree(tiny_run, tmp_path / "first")
    (tmp_path / "songs.txt").write_text(TEXT[::-1] * 3, encoding="utf-8")
    return tmp_path


def start(home, *words):
    settings = ["init_from=first", "data.path=songs.txt", *TRAINING, *words]
    return run_script("train.py", "run_dir=second", *settings, cwd=home)


def test_it_starts_with_the_weights_and_tokens_of_the_other_run(home, monkeypatch):
    monkeypatch.chdir(home)
    settings = ["init_from=first", "data.path=songs.txt", *TRAINING]
    config = load_config(None, settings, model_settings)
    first = load_run("first")
    assert config.model == first.config.model
    trainer = Trainer(config, open_text(config, tokenizer=first.tokenizer), home / "second")
    there, here = first.model.state_dict(), trainer.model.state_dict()
    assert there.keys() == here.keys() and all(torch.equal(there[n], here[n]) for n in there)


def test_averaged_weights_start_there_too(home, monkeypatch):
    monkeypatch.chdir(home)
    settings = ["init_from=first", "data.path=songs.txt", "train.ema=0.9", *TRAINING]
    config = load_config(None, settings, model_settings)
    first = load_run("first")
    trainer = Trainer(config, open_text(config, tokenizer=first.tokenizer), home / "second")
    name = "blocks.0.attention.W_query.weight"
    assert torch.equal(trainer.average.tensors[name], first.model.state_dict()[name])


def test_a_run_that_started_elsewhere_goes_on_without_it(home):
    done = start(home)
    assert done.returncode == 0, done.stderr
    tokenizer = Tokenizer.load(home / "second" / "tokenizer.json")
    assert tokenizer.fingerprint == Tokenizer.load(home / "first" / "tokenizer.json").fingerprint
    shutil.rmtree(home / "first")
    words = ["--resume", "second", "train.max_steps=15", "--debug"]
    done = run_script("train.py", *words, cwd=home)
    assert done.returncode == 0, done.stderr
    assert json.loads((home / "second" / "summary.json").read_text(encoding="utf-8"))["steps"] == 15
    done = run_script("inspect_heads.py", "second", cwd=home)
    assert done.returncode == 0, done.stderr
    assert "validation passages" in done.stdout


def test_on_its_own_text_it_is_as_good_as_it_was(home, text_file):
    words = [f"data.path={text_file}", "train.learning_rate=1e-9", "train.max_steps=1"]
    done = start(home, *words)
    assert done.returncode == 0, done.stderr
    before, after = (
        json.loads((home / name / "summary.json").read_text(encoding="utf-8"))["best_val_loss"]
        for name in ("first", "second")
    )
    assert after == pytest.approx(before, abs=1e-4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model.num_layers=3"], "model.num_layers: 3, but the weights of first are for 2"),
        (["model.embed_dim=32"], "model.embed_dim"),
        (["model.bias=on"], "model.bias"),
        (["data.tokenizer=char"], "data.tokenizer: char, but first has learned bpe tokens"),
        (["init_from=nowhere"], "convert.py import"),
        (["init_from=first/config.yaml"], "holds no checkpoint"),
        (["init_from=weights.pt"], "pickled"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line_and_leaves_no_run(home, words, said):
    done = start(home, *words)
    assert done.returncode in (2, 3)
    (line,) = done.stderr.splitlines()
    assert said in line
    assert not (home / "second").exists()


def test_another_tokenizer_is_refused_by_the_trainer_too(home, monkeypatch):
    monkeypatch.chdir(home)
    config = load_config(
        None, ["init_from=first", "data.path=songs.txt", *TRAINING], model_settings
    )
    with pytest.raises(UserError, match="data.tokenizer"):
        train(config, open_text(config), home / "second")
    assert not (home / "second" / "config.yaml").exists()
    first = Tokenizer.load(home / "first" / "tokenizer.json")
    again = open_text(config, tokenizer=first)  # not the ids kept for the text's own tokenizer
    assert again.tokenizer.fingerprint == first.fingerprint


def test_a_damaged_run_is_no_starting_point(home):
    for path in (home / "first").rglob("model.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    done = start(home)
    assert done.returncode == 3 and "damaged" in done.stderr


def test_dropout_and_a_shorter_context_may_change(home, monkeypatch):
    monkeypatch.chdir(home)
    words = ["data.path=songs.txt", "model.positions=learned", *TINY]
    done = run_script("train.py", "run_dir=learned", *words, cwd=home)
    assert done.returncode == 0, done.stderr
    changes = ["model.dropout=0.1", "model.context_length=11"]
    config = load_config(
        None, ["init_from=learned", "data.path=songs.txt", *TRAINING, *changes], model_settings
    )
    require_same_model(config)
    first = load_run("learned")
    trainer = Trainer(config, open_text(config, tokenizer=first.tokenizer), home / "second")
    positions = trainer.model.position_embedding.weight
    assert torch.equal(positions, first.model.position_embedding.weight[:11])
    longer = load_config(None, ["init_from=learned", "context_length=25"], model_settings)
    with pytest.raises(UserError, match="has learned 24 positions"):
        require_same_model(longer)
