"""What kinds of files hold text, told by their names, and how they are unpacked.

`.jsonl` has a document a line, as an object of which one field is the text; Parquet has one a row.
Any of them but Parquet may be packed: `stories.jsonl.zst`. A name of another ending is read as
plain text, so that patterns such as `**/*.py` work.

path -> bytes, unpacked; lines of JSON or rows of a table -> documents
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from minigpt.errors import DATA, UserError
from minigpt.extras import first_of, required

SUFFIXES = (".txt", ".md", ".text", ".jsonl", ".parquet")
PACKED = (".gz", ".zst")
LONGEST_LINE = 2**26  # characters; a document is read as a whole
ROWS = 64  # of a table, read at once
BUFFER = 2**20  # bytes

# ------------------------------------------------------------------------------ names


def endings(file: Path) -> tuple[str, str]:
    """What a file holds and how it is packed: `a.jsonl.gz` -> `.jsonl`, `.gz`."""
    packing = file.suffix.lower()
    if packing in PACKED:
        return Path(file.stem).suffix.lower(), packing
    return packing, ""


def holds_text(file: Path) -> bool:
    """Whether a file in a folder is meant, by its name."""
    content, packing = endings(file)
    return content in SUFFIXES and not (content == ".parquet" and packing)


def form(file: Path) -> str:
    """What decides, beside its bytes, about the text of a file; empty for plain text."""
    content, packing = endings(file)
    return (content if content in (".jsonl", ".parquet") else "") + packing


# ------------------------------------------------------------------------------ unpacking


def open_unpacked(file: Path) -> BinaryIO:
    """The bytes of a file as they were before it was packed."""
    packing = endings(file)[1]
    if packing == ".gz":
        return cast(BinaryIO, gzip.open(file, "rb"))
    if packing == ".zst":
        zstd = first_of("compression.zstd", "backports.zstd")  # Python's own from 3.14 on
        zstd = zstd or required("backports.zstd", "data", str(file), "a .zst file")
        return zstd.open(file, "rb")
    return file.open("rb")


def read_unpacked(stream: BinaryIO, size: int, file: Path, offset: int) -> bytes:
    """The next bytes; raises UserError where they can't be unpacked. `offset` bytes came before."""
    try:
        return stream.read(size)
    except OSError as error:
        if not isinstance(error, gzip.BadGzipFile):
            raise
        reason: Exception = error
    except Exception as error:
        if not isinstance(error, EOFError | zlib.error) and type(error).__name__ != "ZstdError":
            raise
        reason = error
    packing = endings(file)[1]
    message = f"{file}: not whole as {packing}, after {offset} unpacked bytes ({reason})"
    raise UserError(f"{message}; get it again, or unpack it yourself", DATA)


# ------------------------------------------------------------------------------ documents


def lines_of(blocks: Iterable[str], file: Path) -> Iterator[str]:
    """The lines of a text that comes in blocks; they end at line feeds only, as JSON's do."""
    rest, number = "", 1
    for block in blocks:
        *lines, rest = (rest + block).split("\n")
        yield from lines
        number += len(lines)
        if len(rest) > LONGEST_LINE:
            most = f"longer than {LONGEST_LINE:,} characters"
            raise UserError(f"{file}: line {number}: {most}; write a document on each line", DATA)
    yield rest


def read_json_lines(lines: Iterable[str], file: Path, field: str) -> Iterator[str]:
    """The text of each line that is not empty; raises UserError naming the line."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"{file}: line {number}"
            yield text_of(parsed(line, where), where, field)


def parsed(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
        reason = "" if isinstance(record, dict) else "not an object, such as {…}"
    except json.JSONDecodeError as error:
        reason = f"no JSON at character {error.pos + 1} ({error.msg})"
    except (ValueError, RecursionError) as error:
        reason = f"no JSON ({error})"
    if reason:
        raise UserError(f"{where}: {reason}; mend or remove the line", DATA)
    return record


def text_of(record: dict[str, Any], where: str, field: str) -> str:
    """The text in a record's field."""
    if field not in record:
        raise UserError(f"{where}: {no_field(field, list(record))}", DATA)
    text = record[field]
    if not isinstance(text, str):
        kind = "null" if text is None else type(text).__name__
        raise UserError(f"{where}: the field {field!r} is {kind}, no text; mend or remove it", DATA)
    if not text.isascii():
        require_whole(text, f"{where}: the field {field!r}")
    return text


def no_field(field: str, there: list[str]) -> str:
    named = ", ".join(there[:8]) + (", …" if len(there) > 8 else "") or "none"
    return f"no field {field!r}; there are {named}; set data.field to the one that holds the text"


def require_whole(text: str, where: str) -> None:
    """JSON can write half of a character, which no text can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(text[error.start]):04X} at character {error.start}, half a character"
        raise UserError(f"{where} holds {half}; mend or remove it", DATA) from None


def read_table(file: Path, field: str) -> Iterator[str]:
    """The text of each row of a Parquet file, a few rows at a time; raises UserError."""
    arrow, number = required("pyarrow", "data", str(file), "a Parquet file"), 0
    from pyarrow import parquet  # type: ignore[import-untyped]

    try:
        with parquet.ParquetFile(file, buffer_size=BUFFER, pre_buffer=False) as table:
            names = table.schema_arrow.names
            if field not in names:
                raise UserError(f"{file}: {no_field(field, names)}", DATA)
            for batch in table.iter_batches(ROWS, columns=[field], use_threads=False):
                for text in batch.column(0).to_pylist():
                    number += 1
                    yield text_of({field: text}, f"{file}: row {number}", field)
    except (arrow.ArrowException, ValueError, OSError) as error:
        reason = str(error).splitlines()[0]
        message = f"{file}: row {number + 1}: can't be read as Parquet ({reason})"
        raise UserError(f"{message}; get it again, or write it as .jsonl", DATA) from None
