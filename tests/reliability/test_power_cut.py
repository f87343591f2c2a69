"""A1: whenever the power goes, the run resumes from a step that was whole.

All that a run asks of the system is written down. From that list follow the disks that a power
cut could leave after each move: of what was not flushed, any name may be there or not, and any
file may be empty, torn, or have zeros in the place of what was written. Each is made only once.
"""

import copy
import functools
import io
import os
import shutil
from dataclasses import dataclass, field

import numpy as np
import pytest

from minigpt import run_directory, saved_runs, storage
from minigpt.text import open_text
from minigpt.training_log import read_metrics

from .golden import STEPS, again, hash_of, signal_at

# ------------------------------------------------------------------------------ what may be left


@dataclass
class File:
    data: bytes = b""
    flushed: bytes = b""

    def left(self, names, data):
        return self.flushed + data(self.data[len(self.flushed) :])


@dataclass
class Folder:
    """`changes` are names taken away and given since the folder was flushed, with their things."""

    names: dict = field(default_factory=dict)
    flushed: dict = field(default_factory=dict)
    changes: list = field(default_factory=list)

    def change(self, taken, given, thing):
        self.changes.append((taken, given, thing))
        self.names = changed(self.names, self.changes[-1:])

    def left(self, names, data):
        """What it holds if of changes and data so much remains: names, each with its content."""
        things = changed(self.flushed, names(self.changes))
        return tuple((name, things[name].left(names, data)) for name in sorted(things))


def changed(names, changes):
    names = dict(names)
    for taken, given, thing in changes:
        names.pop(taken, None)
        if given is not None:
            names[given] = thing
    return names


NAMES = [lambda changes: changes, lambda changes: []]
DATA = [
    lambda new: new,
    lambda new: b"",
    lambda new: new[: len(new) // 2],
    lambda new: bytes(len(new)),
    lambda new: new[: len(new) // 2] + bytes(len(new) - len(new) // 2),
    lambda new: bytes(len(new) // 2) + new[len(new) // 2 :],
]


def drawn(random):
    """Any of the changes in a folder, and of each file what arrived up to a random place."""

    def names(changes):
        return [change for change in changes if random.random() < 0.5]

    def data(new):
        place, zeros = random.randint(0, len(new)), bytes(len(new))
        return random.choice([new, new[:place], new[:place] + zeros[place:], zeros[:place]])

    return names, data


def ways(random, draws):
    """What a power cut may do: always the plain cases, then any others."""
    yield from ((names, data) for names in NAMES for data in DATA)
    yield from (drawn(random) for _ in range(draws))


class Disk:
    """What a disk holds, and what of that it may hold if the power goes now."""

    def __init__(self, folder):
        self.base = folder
        self.root = read_in(folder)

    def at(self, path):
        place = self.root
        for part in os.path.relpath(path, self.base).split("/"):
            place = place if part == "." else place.names[part]
        return place

    def apply(self, move):
        kind, path, *rest = move
        within, name = os.path.split(os.path.relpath(path, self.base))
        parent = self.at(os.path.join(self.base, within))
        if kind == "mkdir":
            parent.change(None, name, Folder())
        elif kind == "create":
            parent.change(None, name, File())
        elif kind == "write":
            file, (place, data) = self.at(path), rest
            assert place == len(file.data)
            file.data += data
        elif kind == "sync":
            there = self.at(path)
            if isinstance(there, File):
                there.flushed = there.data
            else:
                there.flushed, there.changes = dict(there.names), []
        elif kind == "rename":
            parent.change(name, os.path.basename(rest[0]), self.at(path))
        else:
            assert kind == "remove"
            parent.change(name, None, None)


def read_in(path):
    if path.is_file():
        data = path.read_bytes()
        return File(data, data)
    names = {child.name: read_in(child) for child in path.iterdir()}
    return Folder(names, dict(names))


def write_out(left, path):
    path.mkdir()
    for name, content in left:
        if isinstance(content, bytes):
            (path / name).write_bytes(content)
        else:
            write_out(content, path / name)


# ------------------------------------------------------------------------------ what was done


class Recorder:
    """Does what is asked of the system, and writes it down."""

    def __init__(self, patch, folder):
        self.moves, self.inside = [], False
        self.folder = str(folder)
        patch.setattr(storage, "open", self.open, raising=False)
        for module, name in ((os, "mkdir"), (os, "unlink"), (os, "replace"), (os, "rename")):
            patch.setattr(module, name, self.watched(getattr(module, name), name))
        patch.setattr(os, "fsync", self.fsync_with(os.fsync))
        patch.setattr(shutil, "rmtree", self.watched(shutil.rmtree, "rmtree"))

    def open(self, path, mode="r", **more):
        if mode not in ("wb", "ab") or not str(path).startswith(self.folder):
            return open(path, mode, **more)
        if not os.path.exists(path) or mode == "wb":
            self.moves.append(("create", str(path)))
        return io.BufferedWriter(Watched(path, mode, self.moves))

    def watched(self, call, name):
        def do(path, *rest, **more):
            if self.inside or not str(path).startswith(self.folder):
                return call(path, *rest, **more)
            self.inside = True
            doomed = [str(path)] if os.path.lexists(path) else []
            if doomed and name == "rmtree":
                for parent, folders, files in os.walk(path):
                    doomed += [os.path.join(parent, child) for child in (*folders, *files)]
            try:
                result = call(path, *rest, **more)
            finally:
                self.inside = False
            if name in ("replace", "rename"):
                assert os.path.dirname(path) == os.path.dirname(rest[0])
                self.moves.append(("rename", str(path), str(rest[0])))
            elif name == "mkdir":
                self.moves.append(("mkdir", str(path)))
            else:
                self.moves += [("remove", child) for child in reversed(doomed)]
            return result

        return do

    def fsync_with(self, call):
        def do(descriptor):
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            call(descriptor)
            if path.startswith(self.folder):
                self.moves.append(("sync", path))

        return do


class Watched(io.FileIO):
    def __init__(self, path, mode, moves):
        super().__init__(path, mode)
        self.moves = moves
        self.place = os.fstat(self.fileno()).st_size

    def write(self, data):
        self.moves.append(("write", str(self.name), self.place, bytes(data)))
        self.place += len(data)
        return super().write(data)


# ------------------------------------------------------------------------------ and what then


@dataclass
class Life:
    """What a disk held, what was then done to it, and what was found of disks made since."""

    disk: Disk
    moves: list
    begun: str = ""  # the hash of the checkpoint that it went on from
    found: dict = field(default_factory=dict)


def recorded(home, do):
    disk = Disk(home)
    with pytest.MonkeyPatch.context() as patch:
        recorder = Recorder(patch, home)
        do()
    return Life(disk, recorder.moves)


@pytest.fixture(scope="module")
def lives(golden, tmp_path_factory):
    """Some steps of a run, from one to another, or a text that is read, each done once."""

    @functools.cache
    def life(before, then):
        home = tmp_path_factory.mktemp(f"from-{before}")
        run_dir, data = home / "run", home / "data"
        data.mkdir()
        if before == "text":
            return recorded(home, lambda: open_text(golden.config(), data / "cache"))
        if before:
            golden.stopped_at(before - 5, run_dir)
            golden.stopped_at(before, run_dir)
        looking = [] if then == STEPS else [signal_at(then)]
        begun = hash_of(saved_runs.last_good(run_dir)[0]) if before else ""
        life = recorded(home, lambda: golden.go_on(run_dir, observers=looking))
        life.begun = begun
        return life

    return life


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No power is cut here, so nothing need reach a disk: what is flushed is written down."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def disks(life, random, draws):
    """After each move what a power cut may leave, and what of it was certain to last."""
    disk = copy.deepcopy(life.disk)
    for move in [None, *life.moves]:
        if move is not None:
            disk.apply(move)
        for names, data in ways(random, draws):
            yield disk.root.left(names, data), disk.root.left(NAMES[1], DATA[1])


def step_in(left):
    """The newest step whose checkpoint has its name."""
    run = dict(dict(left).get("run", ()))
    return max((int(n[5:]) for n, _ in run.get("checkpoints", ()) if n[0] == "s"), default=0)


DRAWS = pytest.mark.parametrize("draws", [1, pytest.param(40, marks=pytest.mark.nightly)])


@DRAWS
@pytest.mark.parametrize(
    ("before", "then"),
    [(0, 3), (9, 12), (10, 12), (18, 21), (STEPS - 3, STEPS)],
    ids=["the first save", "pruning", "the same step again", "samples", "the end"],
)
def test_after_a_power_cut_it_goes_on_from_a_whole_step(
    golden, lives, tmp_path, record, before, then, draws
):
    life, place = lives(before, then), tmp_path / "left"
    known = len(life.found)
    for left, certain in disks(life, again("power", before), draws):
        if left not in life.found:
            write_out(left, place)
            step = life.found[left] = goes_on_from(golden, place / "run", life.begun)
            if draws > 1 and len(life.found) % 10 == 0 and step < STEPS:
                after = step + (2 if step % 10 == 9 else 1)  # not where it would evaluate
                golden.stopped_at(after, place / "run")
                golden.require(place / "run", after)
            shutil.rmtree(place)
        assert life.found[left] >= max(step_in(certain), before)
    assert step_in(certain) == then  # what was saved lasts, its folders' names as well
    record("A1", len(life.found) - known)


def goes_on_from(golden, run_dir, begun):
    """The step from which a run resumes, 0 where it starts anew; it is as it should be there."""
    run_directory.tidy_up(run_dir)
    if not saved_runs.checkpoints(run_dir):
        run_directory.start(run_dir, golden.config(), golden.corpus)
        return 0
    newest, _ = saved_runs.last_good(run_dir)
    assert newest is not None, "nothing to go on from"
    step = saved_runs.step_of(newest)
    assert hash_of(newest) in (golden.table[step], begun)
    folder, _ = run_directory.resume(run_dir, golden.config(), golden.corpus)
    assert folder == newest
    steps = [r["step"] for r in read_metrics(run_dir) if "train_loss" in r and r["step"] <= step]
    assert steps == list(range(1, step + 1))
    return step


@DRAWS
def test_after_a_power_cut_a_text_is_read_as_before(golden, lives, tmp_path, record, draws):
    life, place = lives("text", None), tmp_path / "left"
    known = len(life.found)
    for left, _ in disks(life, again("power", "text"), draws):
        if left not in life.found:
            write_out(left, place)
            corpus = open_text(golden.config(), place / "data" / "cache")
            assert corpus.fingerprint == golden.corpus.fingerprint
            np.testing.assert_array_equal(corpus.train.ids, golden.corpus.train.ids)
            np.testing.assert_array_equal(corpus.val.ids, golden.corpus.val.ids)
            life.found[left] = None
            shutil.rmtree(place)
    record("A1", len(life.found) - known)
