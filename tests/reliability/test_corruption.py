"""A4, A5: no damage to a checkpoint goes unseen, and the last good one is found."""

import shutil

import pytest

from minigpt import checkpoint, run_directory, saved_runs
from minigpt.errors import DATA, UserError

from .golden import again

FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "manifest.json")


def damaged(data: bytes, random) -> bytes:
    """The same bytes after a flip, a cut, a swap, or with something added."""
    place = random.randrange(len(data))
    how = random.choice(("flip", "flip", "flip", "cut", "swap", "add", "zero"))
    if how == "flip":
        return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]
    if how == "cut":
        return data[:place]
    if how == "add":
        return data + random.randbytes(random.randrange(1, 99))
    size = random.randrange(1, 1 + min(512, len(data) // 2))
    first, second = sorted(random.choices(range(len(data) - size + 1), k=2))
    if how == "zero" or second < first + size:
        return data[:first] + bytes(size) + data[first + size :]
    swapped = data[first + size : second]
    block, other = data[first : first + size], data[second : second + size]
    return data[:first] + other + swapped + block + data[second + size :]


def cases(original: bytes, number: int, seed):
    """Damaged bytes that differ from the original."""
    made = 0
    while made < number:
        data = damaged(original, again(seed, made))
        made += 1
        if data != original:
            yield made, data


@pytest.fixture
def run_dir(golden, tmp_path):
    run_dir = tmp_path / "run"
    for step in (14, 19, 23):
        golden.stopped_at(step, run_dir, "keep=9", "save_interval=50")
    for folder in saved_runs.checkpoints(run_dir)[:-3]:
        shutil.rmtree(folder)
    shutil.copytree(golden.checkpoint(1), tmp_path / "step 1")
    return run_dir


@pytest.mark.parametrize("number", [375, pytest.param(2500, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", FILES)
def test_every_damage_is_seen(golden, run_dir, record, name, number):
    path = saved_runs.checkpoints(run_dir)[-1] / name
    original = path.read_bytes()
    for case, data in cases(original, number, name):
        path.write_bytes(data)
        with pytest.raises(UserError, match=f"{path.parent.name}/.*(damaged|format)") as caught:
            saved_runs.verify(path.parent)
        assert "\n" not in str(caught.value), case
    assert saved_runs.last_good(run_dir)[0] == saved_runs.checkpoints(run_dir)[-2]
    path.write_bytes(original)
    golden.require(run_dir, 23)
    record("A4", number)


def test_a_changed_tokenizer_or_model_setting_is_seen(run_dir, record):
    """Or it changes nothing: the same model with the same vocabulary comes of it."""
    right = checkpoint.load_run(run_dir, "last")
    for name in ("tokenizer.json", "config.yaml"):
        path = run_dir / name
        original = path.read_bytes()
        for case, data in cases(original, 60, name):
            path.write_bytes(data)
            try:
                found = checkpoint.load_run(run_dir, "last")
            except UserError as error:
                assert "\n" not in str(error)
            else:
                assert found.config.model == right.config.model, case
                assert found.tokenizer.tokens == right.tokenizer.tokens, case
        path.write_bytes(original)
    record("A4", 120)


def truncate(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def other_step(folder):
    """What a copy by hand may do: whole files, but of another step."""
    shutil.rmtree(folder)
    shutil.copytree(folder.parents[2] / "step 1", folder)


def empty(folder):
    shutil.rmtree(folder)
    folder.mkdir()


def flip(folder):
    path = folder / "optimizer.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "a file cut": truncate,
    "a bit flipped": flip,
    "a file gone": lambda folder: (folder / "state.json").unlink(),
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "an empty folder": empty,
    "another step's files": other_step,
}
SLOTS = [(2,), (1, 2), (0, 1, 2), (0, 2), (0,)]


@pytest.mark.parametrize("slots", SLOTS, ids=str)
@pytest.mark.parametrize("damage", DAMAGE)
def test_it_goes_on_from_the_last_good_of_three(golden, run_dir, record, damage, slots):
    folders = saved_runs.checkpoints(run_dir)
    for slot in slots:
        DAMAGE[damage](folders[slot])
    files = sorted(path for path in run_dir.rglob("*") if path.is_file())
    good = [slot for slot in range(3) if slot not in slots]
    if not good:
        with pytest.raises(UserError, match="all its checkpoints are damaged") as caught:
            run_directory.resume(run_dir, golden.config(), golden.corpus)
        assert caught.value.exit_code == DATA
        assert sorted(path for path in run_dir.rglob("*") if path.is_file()) == files
    else:
        found, warnings = run_directory.resume(run_dir, golden.config(), golden.corpus)
        assert found == folders[good[-1]]
        assert len(warnings) == 2 - good[-1]
        golden.go_on(run_dir, "save_interval=50")
        golden.require(run_dir, 60)
    record("A5", 1)
