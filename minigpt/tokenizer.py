"""Text as numbers: five kinds of tokenizer, all one class over `tiktoken.Encoding`.

tiktoken cuts a text into pieces by a pattern, looks each piece up whole, and merges bytes where
it is not there. So a table of characters, of bytes, of words or of merged pairs is all it takes.

text <-> ids
"""

import codecs
import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tiktoken

from minigpt import storage
from minigpt.errors import DATA, UserError

# Every pattern cuts between a line break and what follows it, so long texts may be cut there too.
CHARACTERS = r"(?s)."
WORDS = r" ?[\p{L}\p{M}]+(?:['’]\p{L}+)*| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]|\s"
PAIRS = r" ?[\p{L}\p{M}]+| ?\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]+|\n+|[^\S\n]+(?=\S)|[^\S\n]+"
BYTES = [bytes([byte]) for byte in range(256)]
GPT2_SIZE = 50_257
VISIBLE = {" ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍"}


class Tokenizer:
    """A vocabulary: `tokens[id]` are the bytes that an id stands for."""

    def __init__(self, kind: str, pattern: str, tokens: list[bytes]) -> None:
        self.kind, self.pattern, self.tokens = kind, pattern, tokens
        ranks = {token: rank for rank, token in enumerate(tokens)}
        self.encoding = tiktoken.Encoding(
            kind, pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
        )
        self.characters = frozenset(t.decode() for t in tokens) if kind == "char" else None

    # -------------------------------------------------------------------------- kinds

    @classmethod
    def char(cls, characters: Iterable[str]) -> "Tokenizer":
        """One token per character; texts with other characters are refused."""
        return cls("char", CHARACTERS, [character.encode() for character in sorted(characters)])

    @classmethod
    def byte(cls) -> "Tokenizer":
        """One token per byte of UTF-8."""
        return cls("byte", CHARACTERS, BYTES)

    @classmethod
    def word(cls, pieces: Iterable[str]) -> "Tokenizer":
        """One token per known word with its leading space, bytes for the others."""
        return cls("word", WORDS, BYTES + [piece.encode() for piece in pieces])

    @classmethod
    def bpe(cls, texts: Iterable[str], vocab_size: int) -> "Tokenizer":
        """Byte pairs merged by how often they occur in `texts` (Sennrich et al. 2016)."""
        import rustbpe

        trainer = rustbpe.Tokenizer()
        trainer.train_from_iterator(iter(texts), vocab_size, pattern=PAIRS)
        ranked = sorted(trainer.get_mergeable_ranks(), key=lambda pair: pair[1])
        return cls("bpe", PAIRS, [bytes(token) for token, _ in ranked])

    @classmethod
    def gpt2(cls) -> "Tokenizer":
        """GPT-2's own 50,257 tokens, from tiktoken's cache folder or the network."""
        try:
            encoding = tiktoken.get_encoding("gpt2")
        except Exception as error:
            raise UserError(
                "data.tokenizer: gpt2 needs its vocabulary once from the network "
                f"({type(error).__name__}); go online once, or set TIKTOKEN_CACHE_DIR to a "
                "folder that was filled on another machine, or use tokenizer bpe",
                DATA,
            ) from None
        tokens = encoding.token_byte_values()
        ordered = sorted(tokens, key=encoding.encode_single_token)
        return cls("gpt2", encoding._pat_str, [*ordered, b"<|endoftext|>"])

    # -------------------------------------------------------------------------- use

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    @property
    def start_id(self) -> int:
        """What a text without a prompt is continued from: a line break where there is one."""
        return self.tokens.index(b"\n") if b"\n" in self.tokens else 0

    def encode(self, text: str) -> list[int]:
        """Raises UserError for characters outside a `char` vocabulary and for half surrogates."""
        self.require_known(text)
        return self.encoding.encode_ordinary(text)

    def encode_to_array(self, text: str) -> np.ndarray:
        """The same as unsigned integers, for long texts: -> (N,)."""
        self.require_known(text)
        return self.encoding.encode_to_numpy(text, disallowed_special=())

    def require_known(self, text: str) -> None:
        if self.characters is not None and not self.characters.issuperset(text):
            unknown = sorted(set(text) - self.characters)
            shown = " ".join(map(visible, unknown[:10]))
            raise UserError(
                f"text: the characters {shown} are not in the model's vocabulary of "
                f"{self.vocab_size}: {''.join(map(visible, sorted(self.characters)))}; "
                "leave them out, or train with data.tokenizer=bpe, which knows every text",
                DATA,
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            place = f"text: character {error.start} is half of a surrogate pair"
            raise UserError(f"{place}; only whole characters can be read; remove it", DATA) from None

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join(self.tokens[id] for id in ids)

    def decode(self, ids: Iterable[int]) -> str:
        """Text; bytes that are no characters become U+FFFD."""
        return self.decode_bytes(ids).decode(errors="replace")

    def label(self, id: int) -> str:
        """A token as something to see: `·cat`, `⏎`, `\\xe2\\x82`."""
        try:
            return "".join(map(visible, self.tokens[id].decode()))
        except UnicodeDecodeError:
            return "".join(f"\\x{byte:02x}" for byte in self.tokens[id])

    # -------------------------------------------------------------------------- on disk

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "pattern": self.pattern,
            "tokens": [readable(token) for token in self.tokens],
        }

    def save(self, path: Path) -> None:
        storage.write_json(path, self.to_json())

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Raises UserError when the file is missing or not one that `save` wrote."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            tokens = [from_readable(token) for token in content["tokens"]]
            return cls(content["kind"], content["pattern"], tokens)
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"{path}: no tokenizer ({type(error).__name__})"
            raise UserError(f"{message}; restore it from the run it belongs to", DATA) from None

    @property
    def fingerprint(self) -> str:
        content = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def build_tokenizer(kind: str, vocab_size: int, texts: Callable[[], Iterable[str]]) -> Tokenizer:
    """The tokenizer of a corpus, whose text `texts()` gives piece by piece."""
    if kind == "char":
        return Tokenizer.char(set().union(*map(set, texts())))
    if kind == "bpe":
        return Tokenizer.bpe(texts(), vocab_size)
    if kind == "word":
        return Tokenizer.word(frequent_words(texts(), vocab_size - len(BYTES)))
    return Tokenizer.gpt2() if kind == "gpt2" else Tokenizer.byte()


def frequent_words(texts: Iterable[str], number: int) -> list[str]:
    """The most frequent pieces that are not single bytes, most frequent first."""
    import regex  # tiktoken's own, so that words are cut here as they are cut there

    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(regex.findall(WORDS, text))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, _ in ranked if len(word.encode()) > 1][: max(number, 0)]


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


def visible(character: str) -> str:
    if character in VISIBLE:
        return VISIBLE[character]
    unseen = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs", "Mn", "Me")
    return f"\\u{ord(character):04x}" if unseen else character


def readable(token: bytes) -> str | list[int]:
    """A token in JSON: its text, or its bytes where they are no text."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return list(token)


def from_readable(token: str | list[int]) -> bytes:
    return token.encode() if isinstance(token, str) else bytes(token)
