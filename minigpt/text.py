"""Any text as a corpus: tokenised once in bounded memory, kept in a file mapped into memory.

The kept ids are named after the text's content, the tokenizer and the split, so they can't be
stale, and a second run starts at once.

text files -> Corpus
"""

import codecs
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from tqdm import tqdm

from minigpt import storage
from minigpt.chunks import cut_into_chunks, split_at
from minigpt.config import Config, DataConfig
from minigpt.data import Corpus, Split
from minigpt.errors import DATA, UserError
from minigpt.parallel import LONG, encoder
from minigpt.text_files import digest, find_decoder, find_files, read_blocks
from minigpt.text_formats import form
from minigpt.tokenizer import PAIRS, WORDS, Tokenizer
from minigpt.vocabulary import build_tokenizer

CACHE = Path("data/cache")
FORMAT = 2
ENOUGH = 2**25  # characters to learn a vocabulary from
WHERE_IT_TAKES_LONG: dict[str, Any] = {"delay": 2, "disable": None, "leave": False}


@dataclass(frozen=True)
class TextSource:
    """A text to be read as often as needed, and what its ids depend on."""

    files: list[Path]
    digest: str
    settings: DataConfig
    given: Tokenizer | None = None  # where it is not made for this text

    @classmethod
    def find(cls, settings: DataConfig, given: Tokenizer | None = None) -> "TextSource":
        find_decoder(settings.encoding)
        files = find_files(str(settings.path))
        return cls(files, digest(files), settings, given)

    @property
    def kind(self) -> str:
        return self.given.kind if self.given is not None else self.settings.tokenizer_kind

    @cached_property
    def key(self) -> str:
        """Differs where the ids would: the name under which they are kept."""
        kind = self.settings.tokenizer_kind
        if self.given is not None:
            kind = self.given.fingerprint
        what = {
            "format": FORMAT,
            "content": self.digest,
            "encoding": codecs.lookup(self.settings.encoding).name,
            "val_fraction": self.settings.val_fraction,
            "tokenizer": kind,
            "pattern": {"word": WORDS, "bpe": PAIRS}.get(kind),
            "vocab_size": self.settings.vocab_size if kind in ("word", "bpe") else None,
        }
        if any(forms := [form(file) for file in self.files]):
            what |= {"forms": forms, "field": self.settings.field}
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    @cached_property
    def num_characters(self) -> int:
        total = 0
        with tqdm(desc="counting", unit="char", unit_scale=True, **WHERE_IT_TAKES_LONG) as bar:
            for block in self.blocks():
                total += len(block)
                bar.update(len(block))
        return total

    @property
    def num_train_characters(self) -> int:
        return int(self.num_characters * (1 - self.settings.val_fraction))

    def blocks(self) -> Iterator[str]:
        return read_blocks(self.files, self.settings.encoding, self.settings.field)

    def parts(self) -> dict[str, Iterator[str]]:
        """The text of both splits, the validation part last; to be read in this order."""
        train, val = split_at(self.blocks(), self.num_train_characters)
        return {"train": train, "val": val}

    def vocabulary_chunks(self) -> Iterator[str]:
        """All characters for `char`; for the others as much of the training part as is enough."""
        if self.settings.tokenizer_kind == "char":
            return self.blocks()
        step = 1 + self.num_train_characters // ENOUGH
        return islice(cut_into_chunks(self.parts()["train"]), 0, None, step)

    def tokenizer(self, quiet: bool | None = True) -> Tokenizer:
        """The tokenizer that the settings ask for, made for this text; raises UserError."""
        if self.given is not None:
            return self.given
        if not self.num_characters:
            message = f"data.path: {self.settings.path}: empty; give a file with text"
            raise UserError(message, DATA)
        kind, size = self.settings.tokenizer_kind, self.settings.vocab_size
        bar = partial(tqdm, desc="reading", unit="part", disable=quiet)
        return build_tokenizer(kind, size, lambda: bar(self.vocabulary_chunks()))

    def require_unchanged(self) -> None:
        if digest(self.files) != self.digest:
            message = f"data.path: {self.settings.path}: changed while it was read; start again"
            raise UserError(message, DATA)


# ------------------------------------------------------------------------------ ids on disk


def open_text(
    config: Config,
    cache: Path = CACHE,
    progress: bool = True,
    tokenizer: Tokenizer | None = None,
) -> Corpus:
    """The corpus of `config.data.path`; raises UserError where the text can't be used.

    A `tokenizer` stands for the one that would be made for this text.
    """
    storage.remove_leftovers(cache)
    source = TextSource.find(config.data, tokenizer)
    path = cache / f"{source.kind}-{source.key[:16]}.ids"
    corpus = read_corpus(path, source)
    if corpus is None:
        quiet = None if progress and source.num_characters >= LONG else True
        write_corpus(path, source, source.tokenizer(quiet), quiet)
        corpus = read_corpus(path, source)
    assert corpus is not None
    corpus.require_room(config.model.context_length)
    return corpus


def read_corpus(path: Path, source: TextSource) -> Corpus | None:
    """The kept ids as a corpus; None where they are missing or not as they were written."""
    try:
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if about["sha256"] != storage.sha256(path):
            return None
        tokenizer = Tokenizer.from_json(about["tokenizer"])
        ids = np.asarray(np.memmap(path, about["dtype"], "r"))
        num_bytes, end = about["num_bytes"], about["num_train_tokens"]
        train, val = Split(ids[:end], num_bytes["train"]), Split(ids[end:], num_bytes["val"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    fingerprint = hashlib.sha256((source.key + tokenizer.fingerprint).encode()).hexdigest()
    return Corpus(str(source.settings.path), tokenizer, train, val, fingerprint)


def write_corpus(
    path: Path, source: TextSource, tokenizer: Tokenizer, quiet: bool | None = True
) -> None:
    """Tokenises a text into `path`, train before val, and writes beside it what to know of it."""
    dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32)
    total = source.num_characters
    bar = tqdm(desc="tokenising", total=total, unit="char", unit_scale=True, disable=quiet)
    with bar, encoder(tokenizer, total) as encode, storage.open_new(path) as file:
        counts = {
            name: write_ids(file, encode(cut_into_chunks(blocks)), dtype, bar)
            for name, blocks in source.parts().items()
        }
        source.require_unchanged()
    about = {
        "sha256": storage.sha256(path),
        "dtype": dtype.name,
        "num_train_tokens": counts["train"][0],
        "num_bytes": {name: num_bytes for name, (_, num_bytes) in counts.items()},
        "tokenizer": tokenizer.to_json(),
    }
    storage.write_json(path.with_suffix(".json"), about)


def write_ids(
    file: BinaryIO, encoded: Iterable[tuple[str, np.ndarray]], dtype: np.dtype, bar: tqdm
) -> tuple[int, int]:
    """Appends ids to `file`; -> how many they are, and how many bytes of text."""
    num_tokens = num_bytes = 0
    for text, ids in encoded:
        file.write(ids.astype(dtype).tobytes())
        num_tokens += len(ids)
        num_bytes += len(text.encode())
        bar.update(len(text))
    return num_tokens, num_bytes
