"""Texts as people keep them: packed, a document a line, in tables; and corpora of gigabytes."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from backports import zstd
from conftest import REPOSITORY, TEXT, run_script
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import Table
from pyarrow.parquet import write_table

from minigpt import text_files, text_formats
from minigpt.config import Config, DataConfig, ModelConfig
from minigpt.errors import UserError
from minigpt.text import open_text
from minigpt.text_files import read_blocks

DOCUMENTS = ["One.\n", "Two", "", "naïve 日本 🙂\u2028\r\n", ' "quoted" \\ \t', "last"]
JOINED = 'One.\nTwo\nnaïve 日本 🙂\u2028\r\n "quoted" \\ \t\nlast'


def json_lines(texts, field="text", **how) -> str:
    rows = [{"id": number, field: text} for number, text in enumerate(texts)]
    return "".join(json.dumps(row, **how) + "\n" for row in rows)


def make(file: Path, texts, field="text") -> Path:
    """Writes documents into a file of the kind that its name says."""
    content, packing = text_formats.endings(file)
    if content == ".parquet":
        write_table(Table.from_pydict({"id": range(len(texts)), field: texts}), file)
        return file
    text = json_lines(texts, field) if content == ".jsonl" else "".join(texts)
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstd.compress}[packing]
    file.write_bytes(pack(text.encode()))
    return file


def text_in(file: Path, field="text", encoding="utf-8") -> str:
    return "".join(read_blocks([file], encoding, field))


@pytest.fixture
def opened(tmp_path):
    def open_it(path, kind="byte", **more):
        data = DataConfig(source="text", path=str(path), tokenizer=kind, **more)
        config = Config(data=data, model=ModelConfig(context_length=1))
        return open_text(config, tmp_path / "cache")

    return open_it


# ------------------------------------------------------------------------------ what is read


@pytest.mark.parametrize("name", ["a.jsonl", "a.JSONL.GZ", "a.jsonl.zst", "a.parquet"])
@pytest.mark.parametrize("field", ["text", "the content"])
def test_documents_become_one_text(tmp_path, name, field):
    assert text_in(make(tmp_path / name, DOCUMENTS, field), field) == JOINED


@pytest.mark.parametrize("name", ["a.txt.gz", "a.md.zst", "a.gz", "a.py.zst", "a.txt"])
def test_a_packed_text_is_the_text(tmp_path, name):
    file = make(tmp_path / name, [TEXT])
    assert text_in(file) == TEXT


def test_packed_in_several_parts_is_whole(tmp_path):
    parts = [TEXT[:500].encode(), TEXT[500:].encode()]
    (tmp_path / "a.txt.gz").write_bytes(b"".join(map(gzip.compress, parts)))
    (tmp_path / "a.txt.zst").write_bytes(b"".join(map(zstd.compress, parts)))
    assert text_in(tmp_path / "a.txt.gz") == text_in(tmp_path / "a.txt.zst") == TEXT


@settings(max_examples=60)
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    plain=st.booleans(),
    block=st.sampled_from([1, 3, 64, 2**20]),
)
def test_any_texts_come_back_from_json_lines(tmp_path_factory, texts, plain, block):
    file = tmp_path_factory.mktemp("lines") / "a.jsonl"
    file.write_bytes(json_lines(texts, ensure_ascii=plain).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "BLOCK", block)
        found = text_in(file)
    expected = ""
    for text in filter(None, texts):
        expected += ("\n" if expected and expected[-1] not in "\r\n" else "") + text
    assert found == expected


def test_lines_may_be_empty_end_as_on_windows_and_begin_with_a_mark(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "a"}\r\n\r\n  \n{"text": "b"}')
    assert text_in(tmp_path / "a.jsonl") == "a\nb"
    (tmp_path / "c.jsonl").write_text('{"text": "a\u2028b\x85"}\n', encoding="utf-8")
    assert text_in(tmp_path / "c.jsonl") == "a\u2028b\x85"  # neither ends a line of JSON
    (tmp_path / "b.jsonl").write_bytes('{"text": "café"}\n'.encode("utf-16"))
    assert text_in(tmp_path / "b.jsonl", encoding="utf-16") == "café"


def test_a_folder_is_read_with_all_that_holds_text(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("a.txt", "b.md.gz", "c.jsonl", "d.jsonl.zst", "e.parquet"):
        make(folder / name, [name])
    for name in ("f.tar.gz", "g.parquet.gz", "h.json", "i.zip"):
        (folder / name).write_bytes(b"no")
    names = [file.name for file in text_files.find_files(str(folder))]
    assert names == ["a.txt", "b.md.gz", "c.jsonl", "d.jsonl.zst", "e.parquet"]
    assert "".join(read_blocks(text_files.find_files(str(folder)), "utf-8")).split() == names


def test_packed_or_not_a_text_has_the_same_ids(tmp_path, opened):
    plain = opened(make(tmp_path / "a.txt", [TEXT]), "bpe")
    for name in ("b.txt.gz", "c.txt.zst", "d.jsonl", "e.parquet"):
        other = opened(make(tmp_path / name, [TEXT]), "bpe")
        assert np.array_equal(other.train.ids, plain.train.ids)
        assert np.array_equal(other.val.ids, plain.val.ids)


# ------------------------------------------------------------------------------ what is kept


def test_plain_texts_keep_the_name_that_runs_know_them_by(tmp_path, opened):
    """A run remembers its corpus by this; it could not go on if it changed."""
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    names = {kind: opened(tmp_path / "a.txt", kind).fingerprint[:16] for kind in ("char", "bpe")}
    assert names == {"char": "7cf510e59879ae4d", "bpe": "79cb8079e95fd66d"}


def test_another_field_or_another_ending_is_another_corpus(tmp_path, opened):
    rows = "".join(json.dumps({"text": "a b" * 9, "title": "c d" * 9}) + "\n" for _ in range(9))
    (tmp_path / "a.jsonl").write_text(rows, encoding="utf-8")
    texts = opened(tmp_path / "a.jsonl", "char")
    titles = opened(tmp_path / "a.jsonl", "char", field="title")
    assert texts.fingerprint != titles.fingerprint
    assert set(titles.tokenizer.tokens) == {b"c", b" ", b"d", b"\n"}
    (tmp_path / "a.jsonl").rename(tmp_path / "a.txt")
    assert b"{" in opened(tmp_path / "a.txt", "char").tokenizer.tokens


def test_a_field_is_named_on_the_command_line_and_kept_with_the_run(tmp_path):
    make(tmp_path / "a.jsonl", [TEXT], "story")
    done = run_script("train.py", "data.path=a.jsonl", "--dry-run", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.strip().endswith(
        "a.jsonl: line 1: no field 'text'; there are id, story; set data.field to the one that "
        "holds the text"
    )
    command = ["train.py", "data.path=a.jsonl", "data.field=story", "--dry-run"]
    done = run_script(*command, "context_length=24", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "field: story" in done.stdout


# ------------------------------------------------------------------------------ what is refused

GOOD = json.dumps({"text": "fine"}) + "\n"
WRONG_LINES = {
    "no JSON": ("{'text': 1}", ["line 2", "no JSON at character 2"]),
    "cut off": ('{"text": "a', ["line 2", "no JSON at character 10"]),
    "a list": ("[1, 2]", ["line 2", "not an object"]),
    "a number": ("17", ["line 2", "not an object"]),
    "deep": ("[" * 100_000, ["line 2", "no JSON"]),
    "a huge number": ('{"text": ' + "1" * 5000 + "}", ["line 2", "no JSON"]),
    "no field": ('{"body": "a"}', ["line 2", "'text'", "body", "data.field"]),
    "no fields": ("{}", ["line 2", "there are none"]),
    "null": ('{"text": null}', ["line 2", "'text'", "null"]),
    "a list of texts": ('{"text": ["a"]}', ["line 2", "'text'", "list"]),
    "half a character": ('{"text": "a\\ud83d"}', ["line 2", "U+D83D at character 1"]),
}


def refusal(file: Path, **how) -> str:
    with pytest.raises(UserError) as caught:
        text_in(file, **how)
    line = str(caught.value)
    assert line.startswith(f"{file}: ")
    assert "\n" not in line and "; " in line
    return line


@pytest.mark.parametrize("name", WRONG_LINES)
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_a_line_that_cannot_be_read_is_named(tmp_path, name, packing):
    line, words = WRONG_LINES[name]
    data = (GOOD + line + "\n" + GOOD).encode()
    file = tmp_path / f"a.jsonl{packing}"
    file.write_bytes(gzip.compress(data) if packing else data)
    for word in words:
        assert word in refusal(file)


def test_a_byte_that_is_no_text_is_named_where_it_lies_unpacked(tmp_path):
    (tmp_path / "a.jsonl.zst").write_bytes(zstd.compress(GOOD.encode() + b'{"text": "caf\xe9"}'))
    assert f"byte {len(GOOD) + 13} is not utf-8" in refusal(tmp_path / "a.jsonl.zst")


def test_a_line_without_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(text_formats, "LONGEST_LINE", 2**16)
    monkeypatch.setattr(text_files, "BLOCK", 2**12)
    (tmp_path / "a.jsonl").write_text(GOOD + json.dumps({"text": "a" * 2**17}), encoding="utf-8")
    assert "line 2: longer than 65,536 characters" in refusal(tmp_path / "a.jsonl")


@pytest.mark.parametrize("packing", [".gz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "other", "junk", "empty"])
def test_what_cannot_be_unpacked_is_one_line(tmp_path, packing, damage):
    file = make(tmp_path / f"a.txt{packing}", [TEXT])
    data = file.read_bytes()
    found = {"cut": data[:-9], "other": b"plain text", "junk": data + b"junk!", "empty": b""}
    file.write_bytes(found[damage])
    if damage == "empty" and packing == ".gz":
        assert text_in(file) == ""
    else:
        assert f"not whole as {packing}, after" in refusal(file)


def test_what_is_no_table_or_holds_no_text_is_one_line(tmp_path):
    file = make(tmp_path / "a.parquet", ["a", None, "b"])
    assert "row 2: the field 'text' is null" in refusal(file)
    assert "no field 'body'; there are id, text" in refusal(file, field="body")
    assert "row 1: the field 'id' is int" in refusal(file, field="id")
    data = make(file, [TEXT] * 9).read_bytes()
    for damaged in (b"", b"plain text", data[:-20], data[:99]):
        file.write_bytes(damaged)
        assert "can't be read as Parquet (" in refusal(file)
    assert "No such file" in str(refusal_of_missing(tmp_path / "none.parquet"))


def refusal_of_missing(file: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        text_files.find_files(str(file))
    return caught.value


@pytest.mark.parametrize(
    ("name", "modules", "package"),
    [
        ("a.parquet", ["pyarrow", "pyarrow.parquet"], "pyarrow"),
        ("a.txt.zst", ["compression", "backports.zstd"], "backports.zstd"),
    ],
)
def test_without_its_package_a_format_is_one_line_and_others_work(
    tmp_path, monkeypatch, name, modules, package
):
    make(tmp_path / name, [TEXT])
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    line = refusal(tmp_path / name)
    assert f"needs the package {package}" in line and "-e '.[data]'" in line
    assert text_in(make(tmp_path / "b.jsonl.gz", [TEXT])) == TEXT


# ------------------------------------------------------------------------------ gigabytes

MEASURE = """
import resource, sys, threading, time
from pathlib import Path
from minigpt.command_line import load_config
from minigpt.text import open_text

def resident():
    pids = [Path('/proc/self')]
    for task in Path('/proc/self/task').iterdir():
        pids += [Path('/proc', pid) for pid in (task / 'children').read_text().split()]
    total = 0
    for pid in pids:
        try:
            total += int((pid / 'statm').read_text().split()[1]) * resource.getpagesize()
        except OSError:
            pass
    return total

def watch():
    global most
    while True:
        most = max(most, resident())
        time.sleep(0.05)

if __name__ == '__main__':
    most = 0
    threading.Thread(target=watch, daemon=True).start()
    corpus = open_text(load_config(None, sys.argv[1:]))
    print(len(corpus.train.ids) + len(corpus.val.ids), most / 2**20)
"""


def tokens_and_memory(folder: Path, *settings: str) -> tuple[int, float]:
    """How many tokens `open_text` makes in a process of its own, and all its processes' MiB."""
    (folder / "measure.py").write_text(MEASURE, encoding="utf-8")
    command = [sys.executable, "measure.py", *settings]
    paths = {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=folder, env=paths, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tokens, most = done.stdout.split()
    return int(tokens), float(most)


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")


@needs_proc
def test_a_text_of_many_megabytes_is_read_in_a_few(tmp_path):
    line = json.dumps({"text": TEXT * 20}).encode() + b"\n"
    repeats = 150 * 2**20 // len(line)
    with gzip.open(tmp_path / "a.jsonl.gz", "wb", 1) as file:
        for _ in range(repeats):
            file.write(line)
    tokens, most = tokens_and_memory(tmp_path, "data.path=a.jsonl.gz", "data.tokenizer=byte")
    assert tokens == repeats * len(TEXT * 20)
    assert most < 150


@pytest.fixture(scope="module")
def gigabyte(tmp_path_factory) -> Path:
    """10⁹ bytes of made-up words, as frequent as words are."""
    file = tmp_path_factory.mktemp("gigabyte") / "a.txt"
    random = np.random.default_rng(1)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    lengths = random.integers(2, 11, 50_000)
    words = np.array(["".join(random.choice(letters[:20], n)) for n in lengths])
    shares = 1 / np.arange(10, 50_010)
    size = 0
    with file.open("wb") as stream:
        while size < 10**9:
            drawn = words[random.choice(len(words), 2**18, p=shares / shares.sum())]
            block = "\n".join(" ".join(drawn[at : at + 12]) + "." for at in range(0, 2**18, 12))
            size += stream.write(block.encode() + b"\n")
    return file


@pytest.mark.nightly
@needs_proc
def test_a_gigabyte_is_tokenised_in_bounded_memory(tmp_path, gigabyte):
    tokens, most = tokens_and_memory(tmp_path, f"data.path={gigabyte}", "data.vocab_size=8192")
    assert tokens > 10**8
    assert most < 600


@pytest.mark.nightly
def test_a_gigabyte_is_tokenised_about_as_fast_as_tiktoken_does(tmp_path):
    """On the same cores: ours from file to file, theirs from list to list."""
    options = ["--megabytes=1000", "--threads=2", "--json=found.json"]
    done = run_script("benchmark.py", "tokenize", *options, cwd=tmp_path, timeout=1800)
    assert done.returncode == 0, done.stderr
    for case in json.loads((tmp_path / "found.json").read_text())["cases"]:
        rates = case["megabytes a second"]
        assert rates["ours"] > 0.7 * rates["tiktoken"], case
