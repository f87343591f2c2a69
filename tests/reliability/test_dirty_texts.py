"""K: whatever a text holds comes back exactly, or is refused in one line with its place."""

import os
import random

import pytest

from minigpt.command_line import load_config
from minigpt.errors import DATA, UserError
from minigpt.text import open_text
from minigpt.text_files import read_blocks

LINE = "A plain line of a text, with words. "
PLAIN = (LINE + "\n") * 30
SPECIAL = ["<|endoftext|>", "<|fim_prefix|>", "<s></s>", "[MASK][PAD]", "<unk>"]
MARK = b"\xef\xbb\xbf"
VARIED = "".join(random.Random(3).choices("abcdefghijklmnop .,\n", k=600)).encode()
READ = {  # these come back as they are
    "plain": PLAIN.encode(),
    "byte order mark": MARK + PLAIN.encode(),
    "CRLF": PLAIN.replace("\n", "\r\n").encode(),
    "CR": PLAIN.replace("\n", "\r").encode(),
    "mixed line ends": (PLAIN[:300] + "\r\n\n\r\r\n" + PLAIN[300:]).encode(),
    "no line end": (LINE * 30).encode(),
    "blank": b" " * 2000,
    "only line ends": b"\n" * 2000,
    "tabs": ("\t".join("abcdefgh") * 100).encode(),
    "joined emoji": ("👩‍👩‍👧‍👦🏳️‍🌈 " * 60).encode(),
    "right to left": ("שלום עולם \u202eabc\u202c مرحبا " * 60).encode(),
    "combining marks": ("e\u0301\u0302\u0303 Z͑ͫ̓ͪ̂ͫ " * 90).encode(),
    "Chinese": ("天地玄黃宇宙洪荒" * 90).encode(),
    "Thai": ("สวัสดีชาวโลก" * 90).encode(),
    "private use": ("\ue000\uf8ff\U0010ffff " * 200).encode(),
    "controls": ("".join(map(chr, range(1, 32))) * 40).encode(),
    "line separators": ("a\u2028b\u2029c\u0085d\x0b\x0c" * 99).encode(),
    "zero width": ("a\u200bb\u200cc\u200dd\ufeffe" * 99).encode(),
    "replacement characters": ("\ufffd" * 900).encode(),
    "one letter": b"a" * 3000,
    "one long line": (LINE * 3000).encode(),
    "one long word": b"abcdefgh" * 20000,
    "digits": b"0123456789" * 300,
    "punctuation": b"!?.,;:-()[]{}<>|/\\'\"`~@#$%^&*_+=" * 60,
    "every character below 0800": "".join(map(chr, range(1, 0x800))).encode() * 3,
    "markup": b"<script>alert(1)</script><!-- --> &amp; " * 60,
    "apostrophes": "it’s it's IT'S 'tis rock 'n' roll ".encode() * 60,
    **{f"special {word}": (word * 99 + LINE * 9).encode() for word in SPECIAL},
}
REFUSED = {  # these are one line
    "empty": b"",
    "one byte": b"a",
    "only a byte order mark": MARK,
    "shorter than the context": b"a b c d",
    "UTF-16": PLAIN.encode("utf-16"),
    "UTF-16 without mark": PLAIN.encode("utf-16-le"),
    "UTF-32": PLAIN.encode("utf-32"),
    "cut character": PLAIN.encode() + "€".encode()[:2],
    "Latin-1": ("été " * 300).encode("latin-1"),
    "NUL": PLAIN[:100].encode() + b"\0" + PLAIN.encode(),
    "all 256 bytes": bytes(range(256)) * 20,
    "half a surrogate": PLAIN.encode() + b"\xed\xa0\x80" + PLAIN.encode(),
    "overlong": PLAIN.encode() + b"\xc0\xaf" + PLAIN.encode(),
    "random bytes": random.Random(7).randbytes(9999),
    "a program": b"\x7fELF\x02\x01\x01" + bytes(2000),
}
PLACES = ("folder without text", "pipe", "loop of links", "unreadable", "missing", "device")
TOKENIZERS = ("byte", "char", "word", "bpe")


def settings(path, tokenizer, **more):
    return load_config(
        None, [f"data.path={path}", f"data.tokenizer={tokenizer}", "context_length=16"]
    )


def read_back(path, tokenizer, cache):
    config = settings(path, tokenizer)
    corpus = open_text(config, cache)
    ids = [*corpus.train.ids.tolist(), *corpus.val.ids.tolist()]
    return corpus.tokenizer.decode_bytes(ids)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("name", READ)
def test_it_comes_back_exactly(tmp_path, record, name, tokenizer):
    path = tmp_path / "text.txt"
    text = READ[name].removeprefix(MARK)
    text = VARIED + text + VARIED  # or one learned token might be all there is to train on
    path.write_bytes(MARK + text if READ[name].startswith(MARK) else text)
    assert read_back(path, tokenizer, tmp_path / "cache") == text
    assert "".join(read_blocks([path], "utf-8")).encode() == text
    record("K", 1)


@pytest.mark.nightly
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_a_line_of_ten_megabytes_comes_back(tmp_path, record, tokenizer):
    path = tmp_path / "text.txt"
    path.write_bytes((LINE * 300000).encode())
    assert read_back(path, tokenizer, tmp_path / "cache") == path.read_bytes()
    record("K", 1)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_its_place(tmp_path, record, name, tokenizer):
    path = tmp_path / "text.txt"
    path.write_bytes(REFUSED[name])
    refused(path, tokenizer, tmp_path)
    record("K", 1)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("name", PLACES)
def test_what_is_no_text_is_refused(tmp_path, record, name, tokenizer):
    path = tmp_path / "place"
    if name == "folder without text":
        path.mkdir()
    elif name == "pipe":
        os.mkfifo(path)
    elif name == "loop of links":
        path.symlink_to(path)
    elif name == "device":
        path.symlink_to("/dev/zero")
    elif name == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("nothing is unreadable to root")
        path.write_text(PLAIN)
        path.chmod(0)
    refused(path, tokenizer, tmp_path)
    record("K", 1)


def refused(path, tokenizer, tmp_path):
    with pytest.raises(UserError, match=path.name) as caught:
        open_text(settings(path, tokenizer), tmp_path / "cache")
    assert caught.value.exit_code == DATA
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "cache").glob(".*"))
