"""The only code that writes files.

A file appears whole or not at all: it is written under a temporary name, flushed to the
disk, renamed, and the folder that holds it is flushed too. A folder (a checkpoint, say) is
made the same way. Before each of these moves stands a `failpoint`, where tests let the machine
fail; nothing else calls the system to change a file.

bytes -> files that survive a power cut
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from minigpt.errors import DATA, LOCKED, RESOURCES, UserError

TEMPORARY = ".partial"
UNFINISHED = re.compile(r"\.(.+)\.\d+\.partial")  # the name that `unfinished` gives
OLD, BEFORE = ".old", ".before"  # ends of names: to be removed, and until its successor is there
UNUSABLE = {errno.EACCES, errno.EROFS, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EEXIST}
UNUSABLE |= {errno.ENOENT, errno.ENAMETOOLONG, errno.ELOOP}
on_failpoint: Callable[[str, Path], None] | None = None  # set by tests only


def failpoint(name: str, path: Path) -> None:
    """Does nothing but in tests: `name` is about to happen to `path`."""
    if on_failpoint is not None:
        on_failpoint(name, path)


def write_bytes(path: Path, data: bytes) -> None:
    """Replaces the file `path` by `data` in one step; raises UserError when the disk is full."""
    with open_new(path, len(data)) as file:
        file.write(data)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Writes `value` as readable JSON with sorted keys, so that equal values are equal bytes."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def unfinished(path: Path) -> Path:
    """Where `path` lies while it is not whole."""
    if not path.name:
        raise UserError(f"'{path}': is no name for a file; give another", DATA)
    return path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")


@contextlib.contextmanager
def open_new(path: Path, size: int | None = None) -> Iterator[BinaryIO]:
    """A binary file to write to; it takes the name `path` only if the block ends without error.

    `size` in bytes, where it is known, is told when there is no room for it.
    """
    temporary = unfinished(path)
    with _explained(path, size):
        if path.exists() and not (path.is_file() or path.is_dir()):
            what = "a device or a pipe, and a file would take its place"
            raise UserError(f"{path}: {what}; give the name of a file", DATA)
        make_folder(path.parent)
        try:
            failpoint("create", path)
            with open(temporary, "wb") as file, held(temporary):
                failpoint("write", path)
                yield file
                failpoint("sync", path)
                _flush(file)
            failpoint("rename", path)
            os.replace(temporary, path)
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill; it becomes `path` only if the block ends without error.

    A folder of that name gives way to it; where the process ends in between, what
    `remove_leftovers` finds is put back.
    """
    temporary, before = unfinished(path), unfinished(path.with_name(path.name + BEFORE))
    with _explained(path):
        try:
            make_folder(path.parent)
            failpoint("create", path)
            temporary.mkdir()
            with held(temporary):
                yield temporary
            sync_folder(temporary)
            failpoint("rename", path)
            if path.exists():
                os.rename(path, before)
            failpoint("replace", path)
            os.rename(temporary, path)
            sync_folder(path.parent)
            shutil.rmtree(before, ignore_errors=True)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            if before.exists():
                put_back(before)


def claimed(path: Path) -> bool:
    """Makes an empty file, and tells whether this process was the first to do so."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        return True
    return False


def make_folder(path: Path) -> None:
    """Makes a folder and those above it, each flushed into the list of the one that holds it."""
    if not path.is_dir():
        make_folder(path.parent)
        failpoint("create", path)
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def append_line(path: Path, line: str) -> None:
    """Adds one line to a log; a torn last line is for the reader to drop."""
    with _explained(path), open(path, "ab") as file:
        failpoint("append", path)
        file.write(line.encode("utf-8") + b"\n")


def sync_file(path: Path) -> None:
    """Flushes a log, so that what follows is never on the disk without it."""
    with _explained(path), open(path, "ab") as file:
        failpoint("sync", path)
        _flush(file)


def remove_folder(path: Path) -> None:
    """Removes a folder; it loses its name first, so that no reader meets half of it."""
    doomed = unfinished(path.with_name(path.name + OLD))
    with _explained(path):
        failpoint("remove", path)
        os.rename(path, doomed)
        shutil.rmtree(doomed)


def remove_leftovers(folder: Path, of: str = "") -> None:
    """Removes what a killed process left half-written in `folder`, and nothing still at work.

    A folder that it was about to replace is put back. `of` is the name of what it was writing;
    without it all is removed.
    """
    for path in folder.glob(f".*{TEMPORARY}"):
        name = UNFINISHED.fullmatch(path.name)
        if not name or (of and name[1].removesuffix(BEFORE) != of):
            continue
        with contextlib.suppress(OSError), held(path):  # what can't be removed does no harm
            if name[1].endswith(BEFORE):
                put_back(path)
            else:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def put_back(before: Path) -> None:
    """Gives a folder its name again, or removes it where its successor is there."""
    path = before.with_name(UNFINISHED.sub(r"\1", before.name).removesuffix(BEFORE))
    if path.exists():
        shutil.rmtree(before)
    else:
        os.rename(before, path)


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Marks a file or folder as at work on, until the process ends, however it does."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Flushes a folder's list of names; a rename is safe only after this."""
    failpoint("sync folder", path)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_bytes(path: Path) -> bytes:
    """What a file holds; OSError for a pipe or a device: to read one may take for ever."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "is a device or a pipe", str(path))
    return path.read_bytes()


def sha256(path: Path) -> str:
    failpoint("read", path)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds `folder` for this process alone; raises UserError naming the owner if it is taken."""
    with _explained(folder):
        make_folder(folder)
        file = open(folder / ".lock", "a+", encoding="utf-8")  # noqa: SIM115, closed just below
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip() or "another process"
            message = f"{folder}: in use by {owner}; wait for it or choose another run_dir"
            raise UserError(message, LOCKED) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename}")
        file.flush()
        yield


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def require_writable(folder: Path) -> None:
    """Raises UserError where no file can be made, so that nobody works for what can't be kept."""
    with _explained(folder):
        there = folder if folder.exists() else _existing_parent(folder)
        tempfile.TemporaryFile(dir=there).close()


@contextlib.contextmanager
def _explained(path: Path, size: int | None = None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        path = Path(*(UNFINISHED.sub(r"\1", part) for part in path.parts))
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            need = f"{size / 2**20:.2f} MiB needed, " if size is not None else ""
            message = f"{path}: the disk is full ({need}{_room(path) / 2**20:.2f} MiB free)"
            raise UserError(f"{message}; make room and try again", RESOURCES) from None
        if error.errno == errno.EIO:
            message = f"{path}: the disk failed ({error.strerror}); use another, and keep a copy"
            raise UserError(f"{message} of what it holds", RESOURCES) from None
        if error.errno in UNUSABLE:
            message = f"{path}: can't be written ({error.strerror})"
            raise UserError(f"{message}; choose another place or work elsewhere", DATA) from None
        raise


def _room(path: Path) -> int:
    """How many bytes a file may have here: as the disk has room and as the shell allows."""
    free = shutil.disk_usage(_existing_parent(path)).free
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return free if limit == resource.RLIM_INFINITY else min(free, limit)


def _existing_parent(path: Path) -> Path:
    return next(parent for parent in path.absolute().parents if parent.exists())
