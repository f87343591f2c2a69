"""Finds text files and reads them as one text, block by block, with every character kept.

Line breaks stay as they are; a byte order mark is dropped. Files are joined in the order of
their paths, and documents in theirs, with a line break between two where the first does not end
in one.

path -> blocks of text
"""

import codecs
import difflib
import glob
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from minigpt.errors import DATA, UserError
from minigpt.text_formats import (
    SUFFIXES,
    endings,
    holds_text,
    lines_of,
    open_unpacked,
    read_json_lines,
    read_table,
    read_unpacked,
)

BLOCK = 2**20  # bytes
HEAD = 8192  # characters among which a NUL means that this is no text
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# ------------------------------------------------------------------------------ finding


def find_files(path: str) -> list[Path]:
    """The files that a name, a folder or a pattern means, each once and sorted."""
    place = Path(os.path.expanduser(path))
    try:
        files = sorted(named_by(place), reverse=True)
        unique = {(found.st_dev, found.st_ino): file for file in files if (found := regular(file))}
    except (OSError, ValueError) as error:
        raise unreadable(place, error) from None
    if not unique:
        raise UserError(f"data.path: {path}: nothing matches; check the pattern", DATA)
    return sorted(unique.values())


def named_by(place: Path) -> list[Path]:
    if place.is_dir():
        return files_below(place)
    if os.path.lexists(place) or not glob.has_magic(str(place)):
        return [place]
    names = glob.iglob(str(place), recursive=True)  # noqa: PTH207, for it may be absolute
    matches = map(Path, names)
    return [match for match in matches if match.exists() and not match.is_dir()]


def files_below(folder: Path) -> list[Path]:
    """The text files in a folder and its folders; hidden ones are left out."""
    files, others, seen = [], set(), set()
    for parent, folders, names in os.walk(folder, onerror=again, followlinks=True):
        real = os.path.realpath(parent)
        folders[:] = [] if real in seen else [name for name in folders if name[0] != "."]
        seen.add(real)
        for name in names:
            if name[0] != "." and holds_text(Path(name)):
                files.append(Path(parent, name))
            else:
                others.add(Path(name).suffix or name)
    if not files:
        there = f"only {', '.join(sorted(others)[:5])}" if others else "nothing"
        wanted = f"no {', '.join(SUFFIXES)} file but {there}"
        advice = f"a pattern such as '{folder}/**/*.py' takes other files"
        raise UserError(f"data.path: {folder}: holds {wanted}; {advice}", DATA)
    return files


def regular(file: Path) -> os.stat_result:
    """Raises UserError for a pipe or a device: to read one may take for ever."""
    found = file.stat()
    if not stat.S_ISREG(found.st_mode):
        message = f"data.path: {file}: not a regular file; give a text file, a folder or a pattern"
        raise UserError(message, DATA)
    return found


def again(error: OSError) -> NoReturn:
    raise error


def unreadable(file: Path, error: Exception) -> UserError:
    name = getattr(error, "filename", None) or file
    reason = getattr(error, "strerror", None) or str(error)
    advice = "give a text file, a folder or a pattern"
    if isinstance(error, FileNotFoundError):
        there = [path.name for path in file.parent.iterdir()] if file.parent.is_dir() else []
        similar = difflib.get_close_matches(file.name, there, 1)
        if file.name == "tinyshakespeare.txt":
            advice = "make it with: python scripts/prepare_data.py shakespeare"
        elif similar:
            advice = f"did you mean {file.parent / similar[0]}?"
    return UserError(f"data.path: {name}: {reason}; {advice}", DATA)


# ------------------------------------------------------------------------------ reading


def digest(files: list[Path]) -> str:
    """The sha256 of what the files hold and of where one ends and the next begins."""
    total = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") as stream:
                total.update(hashlib.file_digest(stream, "sha256").digest())
        except OSError as error:
            raise unreadable(file, error) from None
    return total.hexdigest()


def read_blocks(files: list[Path], encoding: str, field: str = "text") -> Iterator[str]:
    """The text of all files as one, in blocks of about a megabyte."""
    waiting, size, last = [], 0, ""
    for file in files:
        for begins, text in read_pieces(file, encoding, field):
            apart = "\n" if begins and last and last[-1] not in "\n\r" else ""
            waiting.append(apart + text)
            size, last = size + len(text), text
            if size >= BLOCK // 2:
                yield "".join(waiting)
                waiting, size = [], 0
    if waiting:
        yield "".join(waiting)


def read_pieces(file: Path, encoding: str, field: str) -> Iterator[tuple[bool, str]]:
    """Pieces of a file's text that are not empty, and whether a document begins with them."""
    content = endings(file)[0]
    if content not in (".jsonl", ".parquet"):
        for number, block in enumerate(read_file(file, encoding)):
            yield number == 0, block
        return
    if content == ".parquet":
        texts = read_table(file, field)
    else:
        texts = read_json_lines(lines_of(read_file(file, encoding), file), file, field)
    for text in filter(None, texts):
        yield True, text


def read_file(file: Path, encoding: str) -> Iterator[str]:
    """The text of one file in blocks; raises UserError with the place of a byte that is none."""
    decoder = find_decoder(encoding)
    offset, first = 0, True
    try:
        with open_unpacked(file) as stream:
            while True:
                data = read_unpacked(stream, BLOCK, file, offset)
                text = decoded(decoder, data, offset, file, encoding)
                if text and first:
                    first, text = False, text.removeprefix("\ufeff")
                    refuse_nul(file, text)
                if text:
                    yield text
                if not data:
                    return
                offset += len(data)
    except OSError as error:
        raise unreadable(file, error) from None


def find_decoder(encoding: str) -> codecs.IncrementalDecoder:
    try:
        "".encode(encoding)  # refuses what is a codec but not one of text
        return codecs.getincrementaldecoder(encoding)()
    except (LookupError, ValueError, TypeError):
        advice = "utf-8, utf-16, latin-1, cp1252 and others that Python knows are allowed"
        message = f"data.encoding: {encoding!r} is no text encoding; {advice}"
        raise UserError(f"{message}; use one of them", DATA) from None


def decoded(
    decoder: codecs.IncrementalDecoder, data: bytes, offset: int, file: Path, encoding: str
) -> str:
    waiting = decoder.getstate()[0]
    try:
        return decoder.decode(data, final=not data)
    except UnicodeError as error:
        place = offset - len(waiting) + getattr(error, "start", 0)
        reason = getattr(error, "reason", str(error))
        advice = "set data.encoding to what it is written in, such as cp1252 or latin-1"
        if offset == 0 and data.startswith(UTF16_MARKS):
            advice = "it begins as UTF-16 does: set data.encoding=utf-16"
        message = f"{file}: byte {place} is not {encoding} ({reason})"
        raise UserError(f"{message}; {advice}, or convert it", DATA) from None


def refuse_nul(file: Path, text: str) -> None:
    place = text.find("\0", 0, HEAD)
    if place >= 0:
        message = f"{file}: character {place} is NUL, so this is a binary file or UTF-16"
        raise UserError(f"{message}; give a text, or set data.encoding=utf-16-le", DATA)
