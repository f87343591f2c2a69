"""Where a text's vocabulary comes from: its characters, its words, its byte pairs, or GPT-2.

text -> Tokenizer
"""

import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from minigpt import storage
from minigpt.download import download
from minigpt.errors import DATA, UserError
from minigpt.tokenizer import BYTES, GPT2, PAIRS, WORDS, Tokenizer

GPT2_URL = "https://openaipublic.blob.core.windows.net/gpt-2/encodings/main/"
GPT2_FILES = {
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
}


def build_tokenizer(kind: str, vocab_size: int, texts: Callable[[], Iterable[str]]) -> Tokenizer:
    """The tokenizer of a corpus, whose text `texts()` gives piece by piece."""
    if kind == "char":
        return Tokenizer.char(set().union(*map(set, texts())))
    if kind == "word":
        return Tokenizer.word(frequent_words(texts(), vocab_size - len(BYTES)))
    if kind == "bpe":
        return learned_pairs(texts(), vocab_size)
    return gpt2() if kind == "gpt2" else Tokenizer.byte()


def frequent_words(texts: Iterable[str], number: int) -> list[str]:
    """The most frequent pieces that are not single bytes, most frequent first."""
    import regex  # type: ignore[import-untyped]  # tiktoken's own, so that words are cut here as they are cut there

    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(regex.findall(WORDS, text))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, _ in ranked if len(word.encode()) > 1][: max(number, 0)]


def learned_pairs(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Byte pairs merged by how often they occur (Sennrich et al. 2016); fewer in a small text."""
    import rustbpe  # type: ignore[import-untyped]

    trainer = rustbpe.Tokenizer()
    trainer.train_from_iterator(iter(texts), vocab_size, buffer_size=16, pattern=PAIRS)
    ranked = sorted(trainer.get_mergeable_ranks(), key=lambda pair: pair[1])
    return Tokenizer("bpe", PAIRS, list(dict.fromkeys(bytes(token) for token, _ in ranked)))


def gpt2() -> Tokenizer:
    """GPT-2's own 50,257 tokens, from tiktoken's cache folder or, once, the network."""
    import tiktoken

    for name, sha256 in GPT2_FILES.items():
        require_cached(GPT2_URL + name, sha256)
    encoding = tiktoken.get_encoding("gpt2")
    ranked = sorted(encoding.token_byte_values(), key=encoding.encode_single_token)
    return Tokenizer("gpt2", GPT2, [*ranked, b"<|endoftext|>"])


def require_cached(url: str, sha256: str) -> None:
    """Puts a file where tiktoken looks for it; tiktoken itself would wait for ever offline."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    folder = folder or f"{tempfile.gettempdir()}/data-gym-cache"
    path = Path(folder, hashlib.sha1(url.encode()).hexdigest())
    try:
        if not path.exists() or storage.sha256(path) != sha256:
            storage.write_bytes(path, download(url, sha256))
    except OSError as error:
        fill = "python -c 'import tiktoken; tiktoken.get_encoding(\"gpt2\")'"
        raise UserError(
            f"data.tokenizer: gpt2 is not in {folder} and {url} can't be had ({error}); go online "
            f"once, or run TIKTOKEN_CACHE_DIR=FOLDER {fill} on another machine, "
            "bring FOLDER here and set TIKTOKEN_CACHE_DIR to it, or use data.tokenizer=bpe",
            DATA,
        ) from None
