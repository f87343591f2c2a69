"""Other tools are told what a training does, change nothing in it, and can't end it."""

import subprocess
import sys

import pytest
from conftest import REPOSITORY, TINY, run_script
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from minigpt import saved_runs
from minigpt.loggers import Follower, Tail, samples_in
from minigpt.training_log import read_metrics

OFTEN = ["model.dropout=0.1", "train.sample_interval=4", "max_steps=8", "eval_interval=4"]


def events_of(run_dir) -> EventAccumulator:
    events = EventAccumulator(str(run_dir / "tensorboard"), size_guidance={"tensors": 0})
    events.Reload()
    return events


@pytest.fixture(scope="module")
def runs(tmp_path_factory, text_file):
    """The same training without and with TensorBoard."""
    folder = tmp_path_factory.mktemp("logged")
    for name, more in (("plain", []), ("told", ["--tensorboard"])):
        words = [f"data.path={text_file}", f"run_dir={name}", *TINY, *OFTEN, *more]
        done = run_script("train.py", *words, cwd=folder)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return folder


def test_looking_on_changes_no_byte_of_the_weights(runs):
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        ends = [saved_runs.find_checkpoint(runs / run, "last") / name for run in ("plain", "told")]
        assert ends[0].read_bytes() == ends[1].read_bytes(), name
    assert not (runs / "plain" / "tensorboard").exists()


def test_tensorboard_has_every_number_every_sample_and_attention(runs):
    events = events_of(runs / "told")
    for name in ("train_loss", "learning_rate", "val_loss"):
        expected = [(r["step"], r[name]) for r in read_metrics(runs / "told") if name in r]
        found = [(event.step, event.value) for event in events.Scalars(name)]
        assert expected and [step for step, _ in found] == [step for step, _ in expected]
        assert [v for _, v in found] == pytest.approx([v for _, v in expected])
    samples = {
        event.step: event.tensor_proto.string_val[0].decode()
        for event in events.Tensors("sample/text_summary")
    }
    written = (runs / "told" / "samples.txt").read_text(encoding="utf-8")
    assert sorted(samples) == [4, 8]
    for text in samples.values():
        assert text.strip()
        for line in text.splitlines():
            assert line.removeprefix("    ") in written
    pictures = events.Images("attention")
    assert [picture.step for picture in pictures] == [4, 8]
    assert pictures[0].encoded_image_string.startswith(b"\x89PNG") and pictures[0].width > 300


def test_a_resumed_run_goes_on_where_it_was(tmp_path, text_file):
    words = [f"data.path={text_file}", *TINY, *OFTEN, "tensorboard=yes"]
    assert run_script("train.py", "run_dir=a", *words, cwd=tmp_path).returncode == 0
    done = run_script("train.py", "--resume", "a", "max_steps=12", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    steps = [event.step for event in events_of(tmp_path / "a").Scalars("train_loss")]
    assert steps == list(range(1, 13))


@pytest.mark.parametrize("tool", ["tensorboard", "wandb"])
def test_without_its_package_it_is_one_line_before_anything_begins(tmp_path, text_file, tool):
    code = (
        "import sys, runpy\n"
        f"sys.modules[{tool!r}] = None\n"  # as if it were not installed
        f"sys.argv = ['train.py', 'data.path={text_file}', '{tool}=on']\n"
        f"runpy.run_path({str(REPOSITORY / 'scripts' / 'train.py')!r}, run_name='__main__')\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: log.{tool}: {'TensorBoard' if tool == 'tensorboard' else 'Weights & Biases'} "
        f"needs the package {tool}, which is not installed; "
        "install it with pip install -c constraints.txt -e '.[logging]'\n"
    )
    assert not list(tmp_path.iterdir())


def test_weights_and_biases_offline(tmp_path, text_file):
    words = [f"data.path={text_file}", "run_dir=a", *TINY, *OFTEN, "--wandb"]
    environment = {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "HOME": str(tmp_path)}
    done = run_script("train.py", *words, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    (log,) = (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")
    data = log.read_bytes()
    for word in (b"train_loss", b"val_loss", b"sample", b"attention", b"embed_dim"):
        assert word in data, word
    assert list((tmp_path / "wandb").rglob("media/images/attention*.png"))


class Broken:
    """A tool whose every call fails."""

    def numbers(self, *_):
        raise OSError("no space\nleft")

    text = picture = close = numbers


class Kept(Broken):
    def __init__(self):
        self.told = []

    def numbers(self, step, values):
        self.told.append((step, values))

    def text(self, *_):
        pass

    picture = text

    def close(self):
        self.told.append("closed")


def broken_picture(model):
    raise ValueError("nothing to see")


def test_one_that_fails_is_told_of_once_and_the_others_go_on(tmp_path, capsys):
    kept = Kept()
    with Follower(tmp_path, [Broken(), kept], broken_picture, 1) as follower:
        for step in (1, 2):
            with (tmp_path / "metrics.jsonl").open("a") as file:
                file.write(f'{{"step": {step}, "slots": {{"a": {{"loss": {step}}}}}}}\n{{"torn')
                file.flush()
                follower(step, None)
                file.truncate(file.tell() - 6)
    assert kept.told == [(1, {"slots/a/loss": 1.0}), (2, {"slots/a/loss": 2.0}), "closed"]
    warnings = capsys.readouterr().err.splitlines()
    assert warnings == [
        "warning: Broken failed and is left out (no space); the training goes on",
        "warning: the picture of attention failed and is left out (nothing to see); "
        "the training goes on",
    ]


def test_a_failing_tool_cannot_end_a_training(tmp_path, text_file):
    code = (
        "import sys, runpy\n"
        "from minigpt.loggers import TensorBoard\n"
        "def fail(*_): raise RuntimeError('broken')\n"
        "TensorBoard.numbers = fail\n"
        f"sys.argv = ['train.py', 'data.path={text_file}', *{[*TINY, *OFTEN, '--tensorboard']!r}]\n"
        f"runpy.run_path({str(REPOSITORY / 'scripts' / 'train.py')!r}, run_name='__main__')\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "warning: TensorBoard failed and is left out (broken); the training goes on\n"
    )
    assert (tmp_path / "runs" / "animals-1" / "summary.json").exists()


def test_a_file_is_followed_line_by_line(tmp_path):
    tail = Tail(tmp_path / "a.txt")
    assert tail.whole_lines() == []
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\nthr")
    assert tail.whole_lines() == ["one", "two"]
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\nthree\n")
    assert tail.whole_lines() == ["three"]
    samples = ["======== step 5", "a", "", "b", "", "======== step 10", ""]
    assert list(samples_in(samples)) == [(5, "a\n\nb"), (10, "")]
