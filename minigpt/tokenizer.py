"""Text as numbers: five kinds of tokenizer, all one class over `tiktoken.Encoding`.

tiktoken cuts a text into pieces by a pattern, looks each piece up whole, and merges bytes where
it is not there. So a table of characters, of bytes, of words or of merged pairs is all it takes.

text <-> ids
"""

import codecs
import functools
import hashlib
import json
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tiktoken

from minigpt import storage
from minigpt.chunks import cut_into_chunks
from minigpt.errors import DATA, UserError

# In every pattern a piece that begins with something visible ends before the next blank;
# chunks.py cuts there.
CHARACTERS = r"(?s:.)"
WORDS = r" ?[\p{L}\p{M}]+(?:['’]\p{L}+)*| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]|\s"
PAIRS = r" ?[\p{L}\p{M}]+(?:['’]\p{L}+)*| ?\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]+|\n+|[^\S\n]+"
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
KINDS = ("char", "byte", "word", "bpe", "gpt2")
BYTES = [bytes([byte]) for byte in range(256)]
VISIBLE = {" ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍"}


class Tokenizer:
    """A vocabulary: `tokens[id]` are the bytes that an id stands for."""

    def __init__(self, kind: str, pattern: str, tokens: list[bytes]) -> None:
        self.kind, self.pattern, self.tokens = kind, pattern, tokens
        self.ids = {token: id for id, token in enumerate(tokens)}
        self.require_sound()
        self.encoding = tiktoken.Encoding(
            kind, pat_str=pattern, mergeable_ranks=self.ids, special_tokens={}
        )

    def require_sound(self) -> None:
        """Raises ValueError where tiktoken would fail later, in the middle of a text."""
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r} is not one of {', '.join(KINDS)}")
        if len(self.ids) != len(self.tokens) or b"" in self.ids or not self.tokens:
            raise ValueError("tokens must be different and not empty")
        if self.kind == "char":
            if any(len(token.decode()) != 1 for token in self.tokens):
                raise ValueError("tokens must be single characters")
        elif not self.ids.keys() >= set(BYTES):
            raise ValueError("each of the 256 bytes must be a token")

    # -------------------------------------------------------------------------- kinds

    @classmethod
    def char(cls, characters: Iterable[str]) -> "Tokenizer":
        """One token per character; texts with other characters are refused."""
        known = sorted(set(characters))
        return cls("char", CHARACTERS, [whole(character) for character in known])

    @classmethod
    def byte(cls) -> "Tokenizer":
        """One token per byte of UTF-8."""
        return cls("byte", CHARACTERS, BYTES)

    @classmethod
    def word(cls, pieces: Iterable[str]) -> "Tokenizer":
        """One token per known word with its leading space, bytes for the others."""
        return cls("word", WORDS, BYTES + [whole(piece) for piece in pieces])

    # -------------------------------------------------------------------------- use

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    @property
    def start_id(self) -> int:
        """What a text without a prompt is continued from: a line break where there is one."""
        return self.ids.get(b"\n", 0)

    def encode(self, text: str) -> list[int]:
        """The ids of a text; what looks like a special token, as <|endoftext|>, is text too.

        Raises UserError for characters outside a `char` vocabulary and for half surrogates.
        """
        return [id for chunk in cut_into_chunks([text]) for id in self.encode_chunk(chunk).tolist()]

    def encode_chunk(self, text: str) -> np.ndarray:
        """The ids (N,) of a text that chunks.py need not cut."""
        data = whole(text)
        if self.kind == "byte":
            return np.frombuffer(data, dtype=np.uint8)
        if self.kind == "char":
            return self.look_up(text)
        return np.array(self.encoding.encode_ordinary(text), dtype=np.uint32)

    def look_up(self, text: str) -> np.ndarray:
        """What `encode_ordinary` gives for single characters, a hundred times as fast."""
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        ids = self.id_of_code[np.minimum(codes, len(self.id_of_code) - 1)]
        if ids.size and ids.min() < 0:
            self.refuse(sorted(set(text) - {token.decode() for token in self.tokens}))
        return ids

    @functools.cached_property
    def id_of_code(self) -> np.ndarray:
        """Code point -> id, or -1; the last entry stands for all code points above it."""
        codes = [ord(token.decode()) for token in self.tokens]
        table = np.full(max(codes) + 2, -1, dtype=np.int32)
        table[codes] = np.arange(len(codes))
        return table

    def refuse(self, unknown: list[str]) -> None:
        shown = " ".join(map(visible, unknown[:10])) + (" …" if len(unknown) > 10 else "")
        known = "".join(visible(token.decode()) for token in self.tokens[:100])
        known += "…" if len(self.tokens) > 100 else ""
        raise UserError(
            f"text: the characters {shown} are not in the model's "
            f"vocabulary; allowed are its {self.vocab_size}: {known}; leave the others out, or "
            "train with data.tokenizer=bpe, which knows every text",
            DATA,
        )

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join(self.tokens[id] for id in ids)

    def decode(self, ids: Iterable[int]) -> str:
        """Text; bytes that are no characters become U+FFFD."""
        return self.decode_bytes(ids).decode(errors="replace")

    def token_bytes(self, id: int) -> bytes:
        return self.tokens[id]

    def label(self, id: int) -> str:
        r"""A token as something to see: `·cat`, `⏎`, `\xe2\x82`."""
        return "".join(map(visible, self.tokens[id].decode(errors="backslashreplace")))

    # -------------------------------------------------------------------------- on disk

    def to_json(self) -> dict[str, Any]:
        tokens = [readable(token) for token in self.tokens]
        return {"kind": self.kind, "pattern": self.pattern, "tokens": tokens}

    @classmethod
    def from_json(cls, content: Any) -> "Tokenizer":
        """Raises ValueError, KeyError or TypeError when it is not what `to_json` gives."""
        tokens = [from_readable(token) for token in content["tokens"]]
        return cls(content["kind"], content["pattern"], tokens)

    def save(self, path: Path) -> None:
        storage.write_json(Path(path), self.to_json())

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Raises UserError when the file is missing or not one that `save` wrote."""
        try:
            return cls.from_json(json.loads(storage.read_bytes(Path(path)).decode("utf-8")))
        except OSError as error:
            reason = error.strerror
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            reason = f"no tokenizer ({type(error).__name__}: {error})"
        raise UserError(f"{path}: {reason}; restore it from the run it belongs to", DATA)

    @functools.cached_property
    def fingerprint(self) -> str:
        content = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


class StreamDecoder:
    """Gives text of ids as soon as it is whole characters, never half of one."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, id: int) -> str:
        return self.decoder.decode(self.tokenizer.tokens[id])

    def finish(self) -> str:
        """What is left; an unfinished character becomes U+FFFD."""
        return self.decoder.decode(b"", final=True)


def whole(text: str) -> bytes:
    """UTF-8; raises UserError where a surrogate stands alone, which UTF-8 can't say."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = f"text: character {error.start} is U+{ord(text[error.start]):04X}, half a character"
        raise UserError(f"{half}; only whole ones can be read; remove it", DATA) from None


def visible(character: str) -> str:
    if character in VISIBLE:
        return VISIBLE[character]
    unseen = unicodedata.category(character)[0] in "CZM"  # control, blank, combining mark
    return ascii(character)[1:-1] if unseen else character


def readable(token: bytes) -> str | list[int]:
    """A token in JSON: its text, or its bytes where they are no text."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return list(token)


def from_readable(token: str | list[int]) -> bytes:
    return token.encode() if isinstance(token, str) else bytes(token)
