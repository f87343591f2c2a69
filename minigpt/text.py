"""Any text as a corpus: found, read in chunks, tokenised once, kept in a file mapped into memory.

The kept ids are named after the text's content, the tokenizer and the split, so they can't be
stale, and a second run starts at once.

files -> Corpus
"""

import codecs
import contextlib
import glob
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from tqdm import tqdm

from minigpt import storage
from minigpt.config import Config, DataConfig
from minigpt.data import Corpus, Split
from minigpt.errors import DATA, UserError
from minigpt.tokenizer import Tokenizer, build_tokenizer

SUFFIXES = {".txt", ".md", ".text"}
CHUNK_BYTES = 2**20
CACHE = Path("data/cache")
FORMAT = 1
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# ------------------------------------------------------------------------------ files


def find_files(path: str) -> list[Path]:
    """The text files that a file's name, a folder or a pattern means, in order of their names."""
    place = Path(path).expanduser()
    if place.is_dir():
        files = sorted(f for f in place.rglob("*") if f.suffix.lower() in SUFFIXES and f.is_file())
    elif place.exists():
        files = [place]
    else:
        files = sorted(f for f in map(Path, glob.glob(str(place), recursive=True)) if f.is_file())
    if not files:
        allowed = f"a text file, a folder with {' '.join(sorted(SUFFIXES))} files, or a pattern"
        found = "holds no text file" if place.is_dir() else "not found"
        raise UserError(f"data.path: {path}: {found}; {allowed} is allowed; check the name", DATA)
    for file in files:
        if not file.is_file():
            raise UserError(f"data.path: {file}: not a regular file; give a text file", DATA)
    return files


@contextlib.contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """The file for reading; what the system objects to becomes a UserError."""
    try:
        with open(file, "rb") as stream:
            yield stream
    except OSError as error:
        message = f"data.path: {file}: {error.strerror}; give a file that can be read"
        raise UserError(message, DATA) from None


def read_chunks(files: list[Path], encoding: str) -> Iterator[str]:
    """The text of all files as one, piece by piece; a line break parts two files.

    A piece ends with a line break that no white space follows, where every tokenizer cuts too,
    so pieces may be tokenised by themselves.
    """
    rest = ""
    for number, file in enumerate(files):
        if number and rest and not rest.endswith("\n"):
            rest += "\n"
        for text in read_file(file, encoding):
            rest += text
            cut = last_cut(rest)
            if cut:
                yield rest[:cut]
                rest = rest[cut:]
    if rest:
        yield rest


def last_cut(text: str) -> int:
    """The place of the last line break that is followed by something visible, plus one."""
    end = len(text)
    while (found := text.rfind("\n", 0, end)) >= 0:
        following = text[found + 1 : found + 2]
        if following and not following.isspace():
            return found + 1
        end = found
    return 0


def read_file(file: Path, encoding: str) -> Iterator[str]:
    """The decoded text of a file in pieces; raises UserError naming the first bad byte."""
    decoder = codecs.getincrementaldecoder(encoding)()
    place = 0
    with opened(file) as stream:
        while True:
            data = stream.read(CHUNK_BYTES)
            if place == 0:
                refuse_binary(file, data, encoding)
                if encoding.lower().replace("-", "") == "utf8":
                    data = data.removeprefix(codecs.BOM_UTF8)
            try:
                yield decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                offset = bad_byte(file, encoding)
                raise UserError(
                    f"{file}: byte {offset}: {error.reason} in {encoding}; say what the file is "
                    "written in, such as data.encoding=cp1252 or latin-1, or convert it to UTF-8",
                    DATA,
                ) from None
            if not data:
                return
            place += len(data)


def refuse_binary(file: Path, data: bytes, encoding: str) -> None:
    wide = encoding.lower().replace("-", "").startswith(("utf16", "utf32"))
    if data.startswith(UTF16_MARKS) and not wide:
        raise UserError(f"{file}: written in UTF-16; set data.encoding=utf-16", DATA)


def bad_byte(file: Path, encoding: str) -> int:
    """The offset of the first byte that the encoding does not know."""
    decoder = codecs.getincrementaldecoder(encoding)()
    offset = 0
    with opened(file) as stream:
        while True:
            waiting = len(decoder.getstate()[0])
            data = stream.read(CHUNK_BYTES)
            try:
                decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                return offset - waiting + error.start
            offset += len(data)


# ------------------------------------------------------------------------------ one look at all of it


@dataclass(frozen=True)
class TextSource:
    """The files of a corpus; `num_characters` and `digest` of the whole text."""

    files: list[Path]
    encoding: str
    num_characters: int
    digest: str

    @classmethod
    def survey(cls, config: DataConfig) -> "TextSource":
        files = find_files(str(config.path))
        digest, num_characters = hashlib.sha256(), 0
        for chunk in read_chunks(files, config.encoding):
            digest.update(chunk.encode("utf-8", "surrogatepass"))
            num_characters += len(chunk)
        if not num_characters:
            raise UserError(f"data.path: {config.path}: empty; give a file with text", DATA)
        return cls(files, config.encoding, num_characters, digest.hexdigest())

    def chunks(self) -> Iterator[str]:
        return read_chunks(self.files, self.encoding)

    def parts(self, val_fraction: float) -> Iterator[tuple[str, str]]:
        """The chunks of the whole text, each with the name of the split that it belongs to."""
        left = int(self.num_characters * (1 - val_fraction))
        for chunk in self.chunks():
            if left:
                yield "train", chunk[:left]
            if len(chunk) > left:
                yield "val", chunk[left:]
            left = max(left - len(chunk), 0)


# ------------------------------------------------------------------------------ ids on disk


def open_text(config: Config, cache: Path = CACHE) -> Corpus:
    """The corpus of `config.data.path`; raises UserError where the text can't be used."""
    data = config.data
    source = TextSource.survey(data)
    key = [FORMAT, source.digest, data.tokenizer_kind, data.vocab_size, data.val_fraction]
    fingerprint = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    folder = cache / fingerprint[:16]
    if not is_whole(folder):
        tokenizer = build_tokenizer(data.tokenizer_kind, data.vocab_size, source.chunks)
        write_ids(folder, source, tokenizer, data.val_fraction)
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    splits = {name: read_split(folder, name) for name in ("train", "val")}
    corpus = Corpus(str(data.path), tokenizer, splits["train"], splits["val"], fingerprint)
    corpus.require_room(config.model.context_length)
    return corpus


def write_ids(
    folder: Path, source: TextSource, tokenizer: Tokenizer, val_fraction: float
) -> None:
    """Tokenises a text in bounded memory into `train.bin` and `val.bin` of a new folder."""
    kind = np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32
    counts = {name: {"bytes": 0, "tokens": 0} for name in ("train", "val")}
    bar = tqdm(
        total=source.num_characters,
        desc="tokenising",
        unit="char",
        unit_scale=True,
        disable=None if source.num_characters > 10 * CHUNK_BYTES else True,
    )
    with storage.new_folder(folder) as new, contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(storage.open_new(new / f"{name}.bin")) for name in counts}
        for name, text, ids in tokenised(source.parts(val_fraction), tokenizer):
            files[name].write(ids.astype(kind).tobytes())
            counts[name]["bytes"] += len(text.encode())
            counts[name]["tokens"] += len(ids)
            bar.update(len(text))
        stack.close()
        tokenizer.save(new / "tokenizer.json")
        storage.write_json(new / "meta.json", {"dtype": kind.__name__, "splits": counts})
    bar.close()


def tokenised(
    parts: Iterable[tuple[str, str]], tokenizer: Tokenizer
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Adds its ids to each (split, text); tiktoken lets several threads work at once."""
    parts, workers = iter(parts), os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        while batch := list(islice(parts, 2 * workers)):
            ids = pool.map(tokenizer.encode_to_array, [text for _, text in batch])
            for (name, text), found in zip(batch, ids, strict=True):
                yield name, text, found


def is_whole(folder: Path) -> bool:
    """Whether the kept ids are there in full."""
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        return (folder / "tokenizer.json").exists() and all(
            (folder / f"{name}.bin").stat().st_size
            == split["tokens"] * np.dtype(meta["dtype"]).itemsize
            for name, split in meta["splits"].items()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def read_split(folder: Path, name: str) -> Split:
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    path, counts = folder / f"{name}.bin", meta["splits"][name]
    if not counts["tokens"]:  # an empty file can't be mapped
        return Split(np.zeros(0, dtype=meta["dtype"]), 0)
    return Split(np.memmap(path, meta["dtype"], "r"), counts["bytes"])
