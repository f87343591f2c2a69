"""Files appear whole or not at all."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from minigpt import storage
from minigpt.command_line import load_config
from minigpt.errors import LOCKED, RESOURCES, UserError
from minigpt.stories import corpus


def test_a_failed_write_leaves_the_old_file_and_no_strays(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    storage.write_text(path, "old")

    def fail(name, where):
        if name == "rename":
            raise OSError(28, "No space left on device", str(where))

    monkeypatch.setattr(storage, "on_failpoint", fail)
    with pytest.raises(UserError, match="disk is full") as caught:
        storage.write_text(path, "new")
    assert caught.value.exit_code == RESOURCES
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_a_failed_folder_leaves_the_old_one_and_no_strays(tmp_path, monkeypatch):
    path = tmp_path / "step-1"
    with storage.new_folder(path) as folder:
        storage.write_text(folder / "a", "old")
    with pytest.raises(KeyError), storage.new_folder(path) as folder:
        storage.write_text(folder / "a", "new")
        raise KeyError
    assert (path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["step-1"]


def test_equal_values_are_equal_bytes(tmp_path):
    storage.write_json(tmp_path / "a", {"x": 1, "y": 2})
    storage.write_json(tmp_path / "b", {"y": 2, "x": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_folder_is_held_by_one_process_which_is_named(tmp_path):
    code = (
        "import sys; from pathlib import Path; from minigpt import storage\n"
        f"with storage.locked(Path({str(tmp_path)!r})): print('mine', flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as owner:
        assert owner.stdout.readline() == "mine\n"
        with (
            pytest.raises(UserError, match=f"process {owner.pid}") as caught,
            storage.locked(tmp_path),
        ):
            pass
        assert caught.value.exit_code == LOCKED
        owner.stdin.close()
    with storage.locked(tmp_path):  # free again when its owner is gone
        pass


def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / ".step-1.77.partial").mkdir()
    (tmp_path / ".file.78.partial").write_text("half")
    (tmp_path / "kept").write_text("whole")
    storage.remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == ["kept"]


def test_what_somebody_is_still_writing_is_kept(tmp_path):
    with storage.open_new(tmp_path / "a") as file, storage.new_folder(tmp_path / "b") as folder:
        storage.remove_leftovers(tmp_path)
        file.write(b"whole")
        storage.write_text(folder / "c", "whole")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_folder_that_may_not_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "a", tmp_path / "folder", tmp_path / ("x" * 300)):
        with pytest.raises(UserError, match="can't be written") as caught:
            storage.write_text(path, "text")
        assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    with pytest.raises(UserError, match="can't be written"), storage.locked(tmp_path / "file"):
        pass
    with pytest.raises(UserError, match="no name"):
        storage.write_text(Path(""), "text")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_full_disk_is_one_line_for_stories_too(tmp_path, monkeypatch):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(corpus, "NUM_STORIES", {"train": 90, "val": 9})
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))  # as if there were no more room
    try:
        with pytest.raises(UserError, match="disk is full") as caught:
            corpus.open_stories(load_config(None), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.exit_code == RESOURCES
    assert not os.listdir(tmp_path)


def test_the_next_writer_removes_what_a_killed_one_left_of_the_same_name_only(tmp_path):
    for name in (".a.png.77.partial", ".b.png.77.partial", ".mine.partial"):
        (tmp_path / name).write_text("half")
    storage.remove_leftovers(tmp_path, "a.png")
    assert sorted(os.listdir(tmp_path)) == [".b.png.77.partial", ".mine.partial"]
    storage.remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == [".mine.partial"]


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="pipe: a device or a pipe"):
        storage.write_text(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()


def test_where_nothing_can_be_written_is_known_before_the_work(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    storage.require_writable(tmp_path / "new" / "folder")
    for folder in (tmp_path / "file", tmp_path / "file" / "a", tmp_path / ("x" * 300)):
        with pytest.raises(UserError, match="can't be written"):
            storage.require_writable(folder)
    assert os.listdir(tmp_path) == ["file"]


def test_a_message_names_what_was_to_be_written_not_its_temporary_place(tmp_path, monkeypatch):
    def fail(name, where):
        if where.name == "model":
            raise OSError(28, "No space left on device", str(where))

    monkeypatch.setattr(storage, "on_failpoint", fail)
    with (
        pytest.raises(UserError, match=f"{tmp_path}/run/model: the disk is full"),
        storage.new_folder(tmp_path / "run") as folder,
    ):
        storage.write_text(folder / "model", "text")


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_folder_that_is_replaced_is_there_all_the_time(tmp_path):
    for number in range(9):
        shutil.rmtree(tmp_path / "a", ignore_errors=True)
        storage.write_text(tmp_path / "a" / "file", "old")
        if (child := os.fork()) == 0:
            calls = iter(range(number))
            storage.on_failpoint = lambda *_, calls=calls: (
                next(calls, None) is not None or os._exit(9)
            )
            with storage.new_folder(tmp_path / "a") as folder:
                (folder / "file").write_text("new")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        storage.remove_leftovers(tmp_path, "a")
        assert os.listdir(tmp_path) == ["a"]
        assert (tmp_path / "a" / "file").read_text() in ("old", "new")
        if status == 0:
            break
    assert 3 < number < 8
