"""Tokenizers: text survives them, files keep them, and a mistake is one line."""

import hashlib
import json
import urllib.error
import urllib.request
from functools import cache

import pytest
import tiktoken
from conftest import SHARED_DATA, TEXT
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import vocabulary
from minigpt.chunks import BLANKS, CHUNK, cut_into_chunks, split_at
from minigpt.errors import DATA, UserError
from minigpt.tokenizer import (
    CHARACTERS,
    GPT2,
    PAIRS,
    WORDS,
    StreamDecoder,
    Tokenizer,
    visible,
)

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
GPT2_CACHE = SHARED_DATA / "tiktoken_cache"
SPECIAL = [
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<s>",
    "[PAD]",
    "\ufeff",
    "\0",
    "\r\n",
    "don't",
    "’ll",
]
EMOJI = ["👩‍👩‍👧‍👦", "🏳️‍🌈", "é", "日本語", "مرحبا", "\u202eabc", "Ünï?", "\U0010ffff"]
texts = st.lists(st.text() | st.sampled_from([*SPECIAL, *EMOJI, *BLANKS, "  ", TEXT[:60]])).map(
    "".join
)
needs_gpt2 = pytest.mark.skipif(not GPT2_CACHE.is_dir(), reason="no filled TIKTOKEN_CACHE_DIR here")
ANY_TEXT = ["byte", "word", "bpe", pytest.param("gpt2", marks=needs_gpt2)]


@cache
def tokenizer(kind: str) -> Tokenizer:
    if kind == "gpt2":
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TIKTOKEN_CACHE_DIR", str(GPT2_CACHE))
            return vocabulary.gpt2()
    return vocabulary.build_tokenizer(kind, 400, lambda: [TEXT])


def refused(action, *words: str) -> str:
    """The one line of the UserError that `action()` raises; it must hold all `words`."""
    with pytest.raises(UserError) as caught:
        action()
    line = str(caught.value)
    assert caught.value.exit_code == DATA
    assert "\n" not in line
    assert line.count(";") >= 2 or "; " in line
    for word in words:
        assert word in line, line
    return line


def no_network(*_, **__):
    raise urllib.error.URLError("no network")


# ------------------------------------------------------------------------------ round trips


@pytest.mark.parametrize("kind", ANY_TEXT)
@given(text=texts)
def test_every_string_survives(kind, text):
    ids = tokenizer(kind).encode(text)
    assert tokenizer(kind).decode(ids) == text
    assert tokenizer(kind).decode_bytes(ids) == text.encode()
    assert all(0 <= id < tokenizer(kind).vocab_size for id in ids)


@pytest.mark.parametrize("kind", ["char", *ANY_TEXT])
@given(text=st.text(st.sampled_from(TEXT)))
def test_ids_are_those_of_tiktoken(kind, text):
    assert tokenizer(kind).encode(text) == tokenizer(kind).encoding.encode_ordinary(text)


@given(text=st.text(min_size=1))
def test_char_knows_its_text_in_order_of_code_points(text):
    char = Tokenizer.char(text)
    assert char.decode(char.encode(text)) == text
    assert [token.decode() for token in char.tokens] == sorted(set(text))


@pytest.mark.parametrize("prompt", ["Ünï?", "?", "Ü", "日", "\U0010ffff", "a\tb"])
def test_char_names_what_it_does_not_know(prompt):
    char = Tokenizer.char("abcdn \n")
    unknown = [visible(c) for c in prompt if c not in "abcdn \n"]
    refused(lambda: char.encode(prompt), "are its 7: ⏎·abcdn;", *unknown)


def test_char_cuts_long_lists_of_characters_short():
    char = Tokenizer.char(map(chr, range(0x4E00, 0x5E00)))
    assert len(refused(lambda: char.encode("abcdefghijklmnop"), "a b c", "…", "4096")) < 400


@pytest.mark.parametrize("kind", ["char", *ANY_TEXT])
def test_half_a_character_is_refused(kind):
    known = Tokenizer.char("ab") if kind == "char" else tokenizer(kind)
    refused(lambda: known.encode("ab\ud83d"), "character 2 is U+D83D")
    assert known.encode("") == []


@pytest.mark.parametrize("kind", ANY_TEXT)
@pytest.mark.parametrize(
    "piece", [" ", "a", "\n", "^", "\r\n", "日", "0", "\u3000", "a\u0301", "'"]
)
def test_long_runs_do_not_upset_tiktoken(kind, piece):
    text = piece * (CHUNK + 1000) + "x"
    assert tokenizer(kind).decode(tokenizer(kind).encode(text)) == text


@needs_gpt2
def test_a_million_blanks_do_not_upset_tiktoken():
    text = " " * 2**20 + "x"  # more than its regular expression can take at once
    assert tokenizer("gpt2").decode(tokenizer("gpt2").encode(text)) == text


# ------------------------------------------------------------------------------ the kinds


def test_byte_is_the_256_bytes():
    assert tokenizer("byte").vocab_size == 256
    assert tokenizer("byte").encode("é\n") == [0xC3, 0xA9, 10]


def test_word_is_one_token_a_word_with_its_space():
    word = Tokenizer.word(["The", " dog", " don't", " o’clock", "é"])
    ids = word.encode("The dog don't o’clock é!")
    assert ids == [256, 257, 258, 259, 32, 260, 33]
    assert word.encode("\n")[0] == ord("\n")
    assert word.encode("é") == [260]


def test_frequent_words_come_first_and_ties_in_order():
    assert vocabulary.frequent_words(["a c c b", "a b aa a"], 3) == [" b", " c", " a"]
    assert vocabulary.frequent_words(["of of of to to it"], 2) == [" of", " to"]
    assert vocabulary.frequent_words(["of of"], 0) == []


def test_bpe_learns_the_same_every_time_and_no_more_than_there_is():
    first, second = (vocabulary.learned_pairs([TEXT], 400) for _ in range(2))
    assert first.tokens == second.tokens
    assert 300 < first.vocab_size <= 400
    small = vocabulary.learned_pairs(["ab ab ab"], 1024)
    assert small.tokens[256:] == [b"ab", b" ab"]
    assert vocabulary.learned_pairs([], 1024).vocab_size == 256


def test_bpe_encodes_as_its_trainer_does():
    import rustbpe

    trainer = rustbpe.Tokenizer()
    trainer.train_from_iterator(iter([TEXT]), 400, pattern=PAIRS)
    assert tokenizer("bpe").encode(TEXT) == trainer.encode(TEXT)


@pytest.mark.parametrize("kind", ["char", "byte", "word", "bpe"])
def test_a_text_without_prompt_starts_from_a_line_break(kind):
    assert tokenizer(kind).decode([tokenizer(kind).start_id]) == "\n"
    assert Tokenizer.char("ab").start_id == 0


@needs_gpt2
def test_gpt2_is_that_of_tiktoken(monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(GPT2_CACHE))
    theirs = tiktoken.get_encoding("gpt2")
    assert tokenizer("gpt2").encode("hello world") == [31373, 995]
    assert tokenizer("gpt2").vocab_size == 50257
    assert tokenizer("gpt2").tokens[50256] == b"<|endoftext|>"
    assert tokenizer("gpt2").encode("<|endoftext|>") == theirs.encode_ordinary("<|endoftext|>")
    assert theirs._pat_str == GPT2


@given(text=texts)
@needs_gpt2
def test_gpt2_ids_are_those_of_tiktoken(text):
    assert tokenizer("gpt2").encode(text) == tiktoken.get_encoding("gpt2").encode_ordinary(text)


# -------------------------------------------------------------------------- gpt2 and the network


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    folder = tmp_path / "tiktoken"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    return folder


def test_gpt2_without_network_says_what_to_do(empty_cache):
    refused(vocabulary.gpt2, "TIKTOKEN_CACHE_DIR", str(empty_cache), "no network", "tokenizer=bpe")


@needs_gpt2
def test_gpt2_damaged_in_the_cache_is_not_taken(empty_cache):
    empty_cache.mkdir()
    for file in GPT2_CACHE.iterdir():
        (empty_cache / file.name).write_bytes(file.read_bytes()[:-1])
    refused(vocabulary.gpt2, "TIKTOKEN_CACHE_DIR")


@needs_gpt2
def test_gpt2_fills_the_cache_from_the_network(empty_cache, monkeypatch):
    class Answer:
        def __init__(self, url, **_):
            self.file = (GPT2_CACHE / hashlib.sha1(url.encode()).hexdigest()).open("rb")
            self.headers, self.read = {}, self.file.read

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

    monkeypatch.setattr(urllib.request, "urlopen", Answer)
    assert vocabulary.gpt2().vocab_size == 50257
    assert {file.name for file in empty_cache.iterdir()} == {f.name for f in GPT2_CACHE.iterdir()}


@needs_gpt2
def test_gpt2_saved_in_a_run_needs_neither_cache_nor_network(tmp_path, empty_cache):
    tokenizer("gpt2").save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.tokens == tokenizer("gpt2").tokens
    assert loaded.encode(TEXT) == tokenizer("gpt2").encode(TEXT)
    assert not empty_cache.exists()


# ------------------------------------------------------------------------------ on disk


@pytest.mark.parametrize("kind", ["char", "byte", "word", "bpe"])
def test_what_is_saved_is_what_is_loaded(tmp_path, kind):
    path = tmp_path / "a run" / "tokenizer.json"
    tokenizer(kind).save(path)
    loaded = Tokenizer.load(path)
    assert loaded.tokens == tokenizer(kind).tokens
    assert loaded.encode(TEXT) == tokenizer(kind).encode(TEXT)
    assert loaded.fingerprint == tokenizer(kind).fingerprint
    loaded.save(path.with_name("again.json"))
    assert path.read_bytes() == path.with_name("again.json").read_bytes()


def test_fingerprints_differ():
    kinds = [tokenizer(kind) for kind in ("char", "byte", "word", "bpe")]
    kinds += [
        Tokenizer.char("ab"),
        Tokenizer.char("abc"),
        Tokenizer.word([]),
        Tokenizer.word(["ab"]),
    ]
    assert len({kind.fingerprint for kind in kinds}) == len(kinds)


def test_the_file_can_be_read_by_people(tmp_path):
    Tokenizer.word([" mouse", "日本"]).save(tmp_path / "tokenizer.json")
    text = (tmp_path / "tokenizer.json").read_text(encoding="utf-8")
    assert '" mouse"' in text and '"日本"' in text


GOOD = Tokenizer.word(["ab"]).to_json()
DAMAGED = {
    "empty": "",
    "cut": json.dumps(GOOD)[:-20],
    "no object": "[]",
    "null": "null",
    "no tokens": json.dumps({"kind": "char", "pattern": CHARACTERS}),
    "no token": json.dumps(GOOD | {"tokens": []}),
    "another kind": json.dumps(GOOD | {"kind": "pickle"}),
    "kind a list": json.dumps(GOOD | {"kind": []}),
    "twice": json.dumps(GOOD | {"tokens": GOOD["tokens"] + ["ab"]}),
    "a byte lost": json.dumps(GOOD | {"tokens": GOOD["tokens"][1:]}),
    "empty token": json.dumps(GOOD | {"tokens": GOOD["tokens"] + [""]}),
    "byte 256": json.dumps(GOOD | {"tokens": GOOD["tokens"] + [[256]]}),
    "number": json.dumps(GOOD | {"tokens": GOOD["tokens"] + [7.5]}),
    "null token": json.dumps(GOOD | {"tokens": GOOD["tokens"] + [None]}),
    "half a character": json.dumps(GOOD | {"tokens": GOOD["tokens"] + ["\ud800"]}),
    "two characters": json.dumps({"kind": "char", "pattern": CHARACTERS, "tokens": ["ab"]}),
    "no pattern": json.dumps(GOOD | {"pattern": "(("}),
    "pattern null": json.dumps(GOOD | {"pattern": None}),
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_is_one_line(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_text(content, encoding="utf-8")
    refused(lambda: Tokenizer.load(path), str(path), "restore it")


def test_a_missing_or_binary_file_is_one_line(tmp_path):
    refused(lambda: Tokenizer.load(tmp_path / "none.json"), "none.json", "No such file")
    (tmp_path / "binary.json").write_bytes(b"\x80\x02\xff")
    refused(lambda: Tokenizer.load(tmp_path / "binary.json"), "binary.json")


# ------------------------------------------------------------------------------ to look at


LABELS = {
    " cat": "·cat",
    "\n": "⏎",
    "\r\n": "␍⏎",
    "\ta": "⇥a",
    "<": "<",
    "</script>": "</script>",
    "🙂": "🙂",
    "\0": r"\x00",
    "\x1b": r"\x1b",
    "\u200d": r"\u200d",
    "\u3000": r"\u3000",
    "\u202e": r"\u202e",
    "\u0301": r"\u0301",
    "\ue000": r"\ue000",
}


@pytest.mark.parametrize(("text", "label"), LABELS.items())
def test_labels_show_what_is_there(text, label):
    word = Tokenizer.word([text] if len(text.encode()) > 1 else [])
    assert word.label(word.ids[text.encode()]) == label


def test_labels_show_half_characters_in_hex():
    half = Tokenizer("bpe", PAIRS, [*Tokenizer.byte().tokens, b" \xe6\x97"])
    assert half.label(0xE6) == r"\xe6"
    assert half.label(256) == r"·\xe6\x97"
    assert half.token_bytes(256) == b" \xe6\x97"


def test_every_label_is_printable():
    for kind in ("byte", "word", "bpe"):
        assert all(
            tokenizer(kind).label(id).isprintable() for id in range(tokenizer(kind).vocab_size)
        )


# ------------------------------------------------------------------------------ streaming


def streamed(tokens: Tokenizer, ids) -> list[str]:
    decoder = StreamDecoder(tokens)
    return [decoder.feed(id) for id in ids] + [decoder.finish()]


@pytest.mark.parametrize("kind", ANY_TEXT)
@given(text=texts.filter(lambda text: "\ufffd" not in text))
def test_a_stream_never_shows_half_a_character(kind, text):
    shown = streamed(tokenizer(kind), tokenizer(kind).encode(text))
    assert "".join(shown) == text
    assert not any("\ufffd" in part for part in shown)


@given(data=st.binary())
def test_a_stream_of_any_bytes_is_what_decode_gives(data):
    assert "".join(streamed(tokenizer("byte"), data)) == tokenizer("byte").decode(data)


# ------------------------------------------------------------------------------ chunks


pieces = st.sampled_from(
    ["a", "é", "日", "7", "'s", "’", "don't", ".", "\u0301", "\u3000", *BLANKS]
)
spaced = st.lists(pieces | st.sampled_from(list(BLANKS)), max_size=40).map("".join)


@pytest.mark.parametrize("pattern", [WORDS, PAIRS, GPT2, CHARACTERS])
@settings(max_examples=150)
@given(text=spaced | texts)
def test_no_token_reaches_across_a_cut(pattern, text):
    """The claim that chunks.py stands on: at each such place, cut or not, the pieces are equal."""
    import regex

    whole = regex.findall(pattern, text)
    for place in range(1, len(text)):
        if text[place] in BLANKS and not text[place - 1].isspace():
            halves = regex.findall(pattern, text[:place]) + regex.findall(pattern, text[place:])
            assert halves == whole


@pytest.mark.parametrize("kind", ANY_TEXT)
@given(text=spaced, size=st.integers(12, 40))
def test_chunks_one_by_one_are_the_whole(kind, text, size):
    text = " ".join(text.split()) + "\n"
    chunks = list(cut_into_chunks([text], size))
    ids = [id for chunk in chunks for id in tokenizer(kind).encode_chunk(chunk).tolist()]
    if all(any(blank in chunk[1:] for blank in BLANKS) for chunk in chunks[:-1]):
        assert ids == tokenizer(kind).encoding.encode_ordinary(text)


@settings(max_examples=150)
@given(text=spaced, size=st.integers(1, 9))
def test_cuts_are_where_no_token_reaches_across_if_there_is_such_a_place(text, size):
    safe = {n for n in range(1, len(text)) if text[n] in BLANKS and not text[n - 1].isspace()}
    start = 0
    for chunk in list(cut_into_chunks([text], size))[:-1]:
        inside = [place for place in range(start + 1, start + size + 1) if place in safe]
        start += len(chunk)
        assert start == max(inside) if inside else len(chunk) == size


@given(text=spaced, size=st.integers(1, 9), sizes=st.lists(st.integers(1, 9), min_size=1))
def test_chunks_do_not_depend_on_the_blocks(text, size, sizes):
    expected = list(cut_into_chunks([text], size))
    blocks, rest = [], text
    for length in sizes:
        blocks.append(rest[:length])
        rest = rest[length:]
    assert list(cut_into_chunks([*blocks, rest], size)) == expected
    assert "".join(expected) == text
    assert all(0 < len(chunk) <= size for chunk in expected)


@given(blocks=st.lists(st.text(max_size=5)), place=st.integers(0, 30))
def test_a_text_is_split_at_a_character(blocks, place):
    before, after = split_at(blocks, place)
    text = "".join(blocks)
    assert ("".join(before), "".join(after)) == (text[:place], text[place:])


@pytest.mark.parametrize("kind", ANY_TEXT)
def test_long_texts_are_encoded_as_tiktoken_does(kind):
    text = TEXT * (3 * CHUNK // len(TEXT)) + "  \r\n\n\t end"
    assert tokenizer(kind).encode(text) == tokenizer(kind).encoding.encode_ordinary(text)
