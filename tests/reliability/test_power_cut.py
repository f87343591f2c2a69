"""A1: whenever the power goes, the run resumes from a step that was whole.

All that a run asks of the system is written down. From that list follows every disk that a power
cut could leave: files and names that were not flushed may be there, missing, or torn.
"""

import io
import os
import shutil
from dataclasses import dataclass, field

import pytest

from minigpt import run_directory, saved_runs, storage
from minigpt.training_log import read_metrics

from .golden import hash_of


@dataclass
class File:
    data: bytes = b""
    flushed: bytes = b""


@dataclass
class Folder:
    names: dict = field(default_factory=dict)
    flushed: dict = field(default_factory=dict)


class Disk:
    """What a disk holds, and what of that it held if the power went now."""

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
        parent, name = self.at(os.path.dirname(path)), os.path.basename(path)
        if kind == "mkdir":
            parent.names[name] = Folder()
        elif kind == "create":
            parent.names[name] = File()
        elif kind == "write":
            file, (place, data) = self.at(path), rest
            file.data = file.data[:place] + data + file.data[place + len(data) :]
        elif kind == "sync":
            there = self.at(path)
            if isinstance(there, File):
                there.flushed = there.data
            else:
                there.flushed = dict(there.names)
        elif kind == "rename":
            self.at(os.path.dirname(rest[0])).names[os.path.basename(rest[0])] = parent.names.pop(
                name
            )
        else:
            assert kind == "remove"
            del parent.names[name]


def read_in(path):
    if path.is_file():
        data = path.read_bytes()
        return File(data, data)
    names = {child.name: read_in(child) for child in path.iterdir()}
    return Folder(names, dict(names))


def write_out(thing, path, names, data):
    """Makes the disk that is left, if of unflushed names and data so much remains."""
    if isinstance(thing, File):
        half = thing.flushed + thing.data[len(thing.flushed) :][: len(thing.data) // 2]
        content = {"all": thing.data, "none": thing.flushed, "half": half}[data]
        if thing.data != thing.flushed and data == "holes":
            content = bytes(len(thing.data))
        path.write_bytes(content)
        return
    path.mkdir()
    for name, child in (thing.names if names(path) else thing.flushed).items():
        write_out(child, path / name, names, data)


class Recorder:
    """Does what is asked of the system, and writes it down."""

    def __init__(self, monkeypatch, folder):
        self.moves, self.inside = [], False
        self.folder = str(folder)
        monkeypatch.setattr(storage, "open", self.open, raising=False)
        for module, name in ((os, "mkdir"), (os, "unlink"), (os, "replace"), (os, "rename")):
            monkeypatch.setattr(module, name, self.watched(getattr(module, name), name))
        monkeypatch.setattr(os, "fsync", self.fsync_with(os.fsync))
        monkeypatch.setattr(shutil, "rmtree", self.watched(shutil.rmtree, "rmtree"))

    def open(self, path, mode="r", **more):
        if mode not in ("wb", "ab") or not str(path).startswith(self.folder):
            return open(path, mode, **more)
        if not os.path.exists(path) or mode == "wb":
            self.moves.append(("create", str(path)))
        return io.BufferedWriter(Watched(path, mode, self.moves))

    def watched(self, call, name):
        kinds = {"mkdir": "mkdir", "unlink": "remove", "rmtree": "remove"}

        def do(path, *rest, **more):
            if self.inside or not str(path).startswith(self.folder):
                return call(path, *rest, **more)
            self.inside = True
            try:
                there = os.path.lexists(path)
                result = call(path, *rest, **more)
            finally:
                self.inside = False
            if name in ("replace", "rename"):
                self.moves.append(("rename", str(path), str(rest[0])))
            elif there or name == "mkdir":
                self.moves.append((kinds[name], str(path)))
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


NAMES = {
    "all names": lambda path: True,
    "only flushed names": lambda path: False,
    "checkpoints' names unflushed": lambda path: path.name != "checkpoints",
    "the run's names unflushed": lambda path: path.name == "checkpoints",
}


def lives(golden, tmp_path, monkeypatch, before, then):
    """The disks that could be left of a run which goes from step `before` to step `then`."""
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    if before:
        golden.stopped_at(before - 5, run_dir)
        golden.stopped_at(before, run_dir)
    disk = Disk(tmp_path)
    with monkeypatch.context() as patch:
        recorder = Recorder(patch, tmp_path)
        golden.stopped_at(then, run_dir)
    shutil.move(run_dir, tmp_path.parent / f"{tmp_path.name}-done")
    committed = False
    for number in range(len(recorder.moves) + 1):
        if number:
            disk.apply(recorder.moves[number - 1])
            last = recorder.moves[number - 1]
            done = last[0] == "sync" and last[1].endswith("/checkpoints")
            committed = committed or (done and f"step-{then:08d}" in disk.at(last[1]).names)
        for names, kept in NAMES.items():
            for data in ("all", "none", "half"):
                yield number, names, data, disk, kept, committed


@pytest.mark.parametrize(("before", "then"), [(0, 3), (9, 12)])
def test_after_a_power_cut_it_goes_on_from_a_whole_step(
    golden, tmp_path, monkeypatch, record, before, then
):
    home = tmp_path / "home"
    home.mkdir()
    seen = set()
    for number, names, data, disk, kept, committed in lives(
        golden, home, monkeypatch, before, then
    ):
        left = tmp_path / "left"
        write_out(disk.root, left, kept, data)
        state = tuple(
            (str(path.relative_to(left)), path.read_bytes() if path.is_file() else None)
            for path in sorted(left.rglob("*"))
        )
        if (hash(state), committed) not in seen:
            seen.add((hash(state), committed))
            case = f"move {number}, {names}, data {data}"
            check(golden, left / "run", before, then if committed else None, case)
        shutil.rmtree(left)
    record("A1", len(seen))


def check(golden, run_dir, before, committed, case):
    if not before and not saved_runs.checkpoints(run_dir):
        assert committed is None, f"{case}: the first checkpoint is lost"
        return
    newest, _ = saved_runs.last_good(run_dir)
    assert newest is not None, f"{case}: nothing to go on from"
    step = saved_runs.step_of(newest)
    assert hash_of(newest) == golden.table[step], case
    assert step >= before and committed in (None, step), f"{case}: back at step {step}"
    folder, _ = run_directory.resume(run_dir, golden.config(), golden.corpus)
    assert folder == newest, case
    steps = [r["step"] for r in read_metrics(run_dir) if "train_loss" in r and r["step"] <= step]
    assert steps == list(range(1, step + 1)), f"{case}: the log has steps {steps}"
