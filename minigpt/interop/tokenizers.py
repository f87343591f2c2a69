"""Our tokenizers as `tokenizer.json`, which Hugging Face's `tokenizers` reads, and back.

tiktoken merges two neighbours where their bytes together are a token, the lowest id first. Such
a file lists pairs instead. A token's bytes, merged alone, always come to the same last pair, and
no context changes that: within a token, merges happen in the same order wherever it stands. So
one pair for each token says the same. Tokens without a last pair are found whole or never.

Tokenizer <-> tokenizer.json
"""

import functools
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from minigpt.errors import DATA, UserError
from minigpt.tokenizer import CHARACTERS, GPT2, PAIRS, WORDS, Tokenizer

END = b"<|endoftext|>"
ONE_CHARACTER = r"[\s\S]"
SPLITS = {WORDS: ("word", WORDS), PAIRS: ("bpe", PAIRS), ONE_CHARACTER: ("char", CHARACTERS)}
THEIR_SPLIT = {"word": WORDS, "bpe": PAIRS, "char": ONE_CHARACTER}
Pair = tuple[bytes, bytes]


# ------------------------------------------------------------------------------ bytes as letters


@functools.cache
def letters() -> dict[int, str]:
    """A visible letter for each byte: itself where it is one, else the next from U+0100 on."""
    itself = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return {byte: chr(byte if byte in itself else next(others)) for byte in range(256)}


def spelled(token: bytes) -> str:
    return "".join(letters()[byte] for byte in token)


@functools.cache
def byte_of() -> dict[str, int]:
    return {letter: byte for byte, letter in letters().items()}


def unspelled(text: str) -> bytes:
    """The reverse of `spelled`; raises KeyError for other letters."""
    return bytes(byte_of()[letter] for letter in text)


def names(tokenizer: Tokenizer) -> list[str]:
    """How each token is written in such files, by id."""
    special = special_ids(tokenizer)
    return [
        token.decode() if id in special else spelled(token)
        for id, token in enumerate(tokenizer.tokens)
    ]


def special_ids(tokenizer: Tokenizer) -> set[int]:
    """GPT-2's mark between texts, which has no place in an ordinary text."""
    return {tokenizer.ids[END]} if tokenizer.kind == "gpt2" and END in tokenizer.ids else set()


# ------------------------------------------------------------------------------ merges


def merges(tokenizer: Tokenizer) -> list[Pair]:
    """The last pair of each token that has one, in the order of ids."""
    if tokenizer.kind in ("char", "byte"):
        return []
    special = special_ids(tokenizer)
    pairs = [
        last_pair(token, tokenizer.ids)
        for id, token in enumerate(tokenizer.tokens)
        if len(token) > 1 and id not in special
    ]
    return [pair for pair in pairs if pair is not None]


def last_pair(token: bytes, ids: dict[bytes, int]) -> Pair | None:
    """The two parts that merge into a token in the end, or None where its bytes never get there."""
    parts = [token[at : at + 1] for at in range(len(token))]
    while len(parts) > 2:
        known = [(ids[a + b], at) for at, (a, b) in enumerate(pairwise(parts)) if a + b in ids]
        if not known:
            return None
        _, at = min(known)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


# ------------------------------------------------------------------------------ out


def to_json(tokenizer: Tokenizer) -> dict[str, Any]:
    """What tokenizer.json is to hold; it encodes every text in the vocabulary as ours does.

    Only <|endoftext|> in a text, which is text to us, becomes the mark of GPT-2's vocabulary.
    """
    written = names(tokenizer)
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": True,
        "vocab": {name: id for id, name in enumerate(written)},
        "merges": [[spelled(first), spelled(second)] for first, second in merges(tokenizer)],
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(id, written[id]) for id in sorted(special_ids(tokenizer))],
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer(tokenizer),
        "post_processor": None,
        "decoder": byte_level(use_regex=True),
        "model": model,
    }


def pre_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """How a text is cut; raises UserError where that can't be said."""
    if tokenizer.kind == "byte":
        return byte_level(use_regex=False)
    if tokenizer.pattern == GPT2:
        return byte_level(use_regex=True)
    pattern = THEIR_SPLIT.get(tokenizer.kind)
    if pattern is None or SPLITS[pattern][1] != tokenizer.pattern:
        message = f"tokenizer.json: cuts texts by a pattern of its own, {tokenizer.pattern!r}"
        raise UserError(f"{message}; only the patterns of minigpt/tokenizer.py are known", DATA)
    cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [cut, byte_level(use_regex=False)]}


def byte_level(use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def added(id: int, name: str) -> dict[str, Any]:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id, "content": name, "special": True} | plain


def about(tokenizer: Tokenizer, context_length: int) -> dict[str, Any]:
    """What tokenizer_config.json is to hold."""
    special = {"bos_token": END.decode(), "eos_token": END.decode()}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_length,
    } | (special if special_ids(tokenizer) else {})


# ------------------------------------------------------------------------------ in


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a GPT-2 folder, from tokenizer.json or vocab.json and merges.txt.

    Raises UserError where it is missing or would encode otherwise than ours.
    """
    path = folder / "tokenizer.json"
    try:
        if path.exists():
            return from_json(json.loads(path.read_text(encoding="utf-8")))
        path = folder / "vocab.json"
        lines = (folder / "merges.txt").read_text(encoding="utf-8").splitlines()
        pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
        vocab = json.loads(path.read_text(encoding="utf-8"))
        model = {"type": "BPE", "vocab": vocab, "merges": pairs}
        return from_json({"model": model, "pre_tokenizer": byte_level(use_regex=True)})
    except OSError as error:
        path, reason = Path(error.filename or path), error.strerror
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        reason = f"no tokenizer that can be read ({type(error).__name__}: {error})"
    raise UserError(f"{path}: {reason}; give a folder with GPT-2's tokenizer", DATA)


def from_json(content: Any) -> Tokenizer:
    """The reverse of `to_json`; raises ValueError and its like where that is not possible."""
    model = content["model"]
    if model.get("type", "BPE") != "BPE" or content.get("normalizer") or model.get("dropout"):
        raise ValueError("only byte pairs without normalisation and dropout are known")
    kind, pattern = cutting(content["pre_tokenizer"])
    special = {token["id"]: token["content"] for token in content.get("added_tokens") or []}
    named = {id: name for name, id in model["vocab"].items()} | special
    if sorted(named) != list(range(len(named))):
        raise ValueError("ids must be 0, 1, 2 and so on")
    marks = {*special, *(id for id, name in named.items() if name == END.decode())}
    tokens = [
        named[id].encode() if id in marks else unspelled(named[id]) for id in range(len(named))
    ]
    tokenizer = Tokenizer(kind, pattern, tokens)
    require_same(tokenizer, model, marks)
    return tokenizer


def cutting(pre: Any) -> tuple[str, str]:
    """The kind and pattern of ours that cut a text as this file does; raises ValueError."""
    steps = pre["pretokenizers"] if pre["type"] == "Sequence" else [pre]
    last = steps[-1]
    if last["type"] == "ByteLevel" and not last.get("add_prefix_space"):
        if len(steps) == 1:
            whole = last.get("use_regex", True)
            return ("gpt2", GPT2) if whole else ("byte", CHARACTERS)
        cut = steps[0].get("pattern", {}).get("Regex")
        if len(steps) == 2 and cut in SPLITS and not last.get("use_regex", True):
            return SPLITS[cut]
    raise ValueError("it cuts texts in a way that is not GPT-2's")


def require_same(tokenizer: Tokenizer, model: Any, marks: set[int]) -> None:
    """Raises ValueError where the file's merges are not what ids in this order come to."""
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
    theirs = [(unspelled(first), unspelled(second)) for first, second in pairs]
    ours = merges(tokenizer)
    if theirs != ours:
        raise ValueError("its merges are not in the order of its ids")
    made = {first + second for first, second in ours}
    if not model.get("ignore_merges") and tokenizer.kind != "char":
        for id, token in enumerate(tokenizer.tokens):
            if len(token) > 1 and token not in made and id not in marks:
                raise ValueError(f"no merge makes {token!r}")
