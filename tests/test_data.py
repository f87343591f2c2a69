"""Corpora: batches and windows, and any file at all, read exactly or refused in one line."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import REPOSITORY, SHARED_DATA, TEXT, run_script
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import download, parallel, text_files, vocabulary
from minigpt.command_line import load_config
from minigpt.config import Config, DataConfig, ModelConfig
from minigpt.data import NOTHING, Corpus, Floor, Split
from minigpt.errors import DATA, RESOURCES, UserError
from minigpt.stories.corpus import open_stories
from minigpt.text import open_text
from minigpt.tokenizer import Tokenizer

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
SHAKESPEARE = SHARED_DATA / "tinyshakespeare.txt"
KINDS = ["char", "byte", "word", "bpe"]
needs_shakespeare = pytest.mark.skipif(not SHAKESPEARE.exists(), reason="no tiny Shakespeare here")
needs_gpt2 = pytest.mark.skipif(
    not (SHARED_DATA / "tiktoken_cache").is_dir(), reason="no filled TIKTOKEN_CACHE_DIR here"
)


def refused(action, *words: str) -> str:
    """The one line of the UserError that `action()` raises; it must hold all `words`."""
    with pytest.raises(UserError) as caught:
        action()
    line = str(caught.value)
    assert caught.value.exit_code == DATA
    assert "\n" not in line
    assert "; " in line
    for word in words:
        assert word in line, line
    return line


# ------------------------------------------------------------------------------ batches


RUNNING = Split(np.arange(1000, dtype=np.uint16), 1000)
STARTS = np.array([0, 7, 30, 31, 100, 640, 900, 990])
STORIES = Split(RUNNING.ids, 1000, STARTS)


def joined(parts) -> tuple[np.ndarray, np.ndarray]:
    xs, ys = zip(*parts, strict=True)
    return np.concatenate(xs), np.concatenate(ys)


def equal(first, second) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("split", [RUNNING, STORIES], ids=["running", "stories"])
def test_a_batch_depends_on_its_arguments_alone(split):
    first = split.batch(7, 3, batch_size=5, context_length=11)
    np.random.seed(0)
    split.batch(7, 4, batch_size=5, context_length=11)
    list(split.windows(3, 13))
    assert equal(split.batch(7, 3, batch_size=5, context_length=11), first)
    others = [(8, 3), (7, 4), (7, 3, 1), (7, 3, 0, 1), (2**63 - 1, 10**12)]
    for other in others:
        assert not equal(split.batch(*other, batch_size=5, context_length=11), first)


@pytest.mark.parametrize("split", [RUNNING, STORIES], ids=["running", "stories"])
def test_a_batch_is_running_text_and_the_next_token(split):
    x, y = split.batch(1, 2, batch_size=17, context_length=11)
    assert x.shape == y.shape == (17, 11)
    assert x.dtype == y.dtype == np.int64
    assert (x == x[:, :1] + np.arange(11)).all()
    assert (y == x + 1).all()


@pytest.mark.parametrize("split", [RUNNING, STORIES], ids=["running", "stories"])
def test_eight_rows_are_four_times_two_rows_on_any_number_of_processes(split):
    size = {"context_length": 11}
    whole = split.batch(1, 2, batch_size=8, **size)
    parts = [split.batch(1, 2, micro_step, batch_size=2, **size) for micro_step in range(4)]
    assert equal(joined(parts), whole)
    order = [(micro_step, rank) for micro_step in range(2) for rank in range(2)]
    parts = [split.batch(1, 2, *turn, world_size=2, batch_size=2, **size) for turn in order]
    assert equal(joined(parts), whole)
    again = [split.batch(1, 2, 1, batch_size=4, **size)]
    assert equal(joined(again), [rows[4:] for rows in whole])


def test_every_place_is_drawn_and_none_too_often():
    small = Split(np.arange(12), 12)
    draws = [small.batch(0, step, batch_size=9, context_length=7)[0][:, 0] for step in range(500)]
    counts = Counter(np.concatenate(draws).tolist())
    assert sorted(counts) == [0, 1, 2, 3, 4]
    assert all(abs(count - 900) < 120 for count in counts.values())


def test_documents_begin_a_row():
    x, _ = STORIES.batch(0, 0, batch_size=500, context_length=11)
    assert set(x[:, 0].tolist()) == set(STARTS[:-1].tolist())  # the last has no room


def test_the_last_document_with_room_begins_a_row_too():
    split = Split(np.arange(30), 30, np.array([0, 18, 19]))
    x, _ = split.batch(0, 0, batch_size=50, context_length=11)
    assert set(x[:, 0].tolist()) == {0, 18}


@pytest.mark.parametrize("starts", [None, np.array([0])])
def test_exactly_one_window(starts):
    split = Split(np.arange(12), 12, starts)
    x, y = split.batch(0, 0, batch_size=2, context_length=11)
    assert x.tolist() == [list(range(11))] * 2
    assert y.tolist() == [list(range(1, 12))] * 2
    (window,) = split.windows(4, 11)
    assert window[0].tolist() == [list(range(11))]
    assert window[1].tolist() == window[2].tolist() == [list(range(1, 12))]


def test_a_batch_is_drawn_quickly():
    split = Split(np.arange(10**6, dtype=np.uint16), 10**6)
    times = []
    for step in range(50):
        started = time.perf_counter()
        split.batch(1, step, batch_size=64, context_length=128)
        times.append(time.perf_counter() - started)
    assert min(times) < 0.0003


# ------------------------------------------------------------------------------ windows


@st.composite
def splits(draw) -> Split:
    length = draw(st.integers(1, 120))
    starts = draw(st.none() | st.sets(st.integers(0, length - 1)))
    begins = None if starts is None else np.array(sorted(starts | {0}))
    return Split(np.arange(length, dtype=np.uint16) + 5, length, begins)


@settings(max_examples=150)
@given(split=splits(), batch_size=st.integers(1, 7), context_length=st.integers(1, 40))
def test_windows_predict_every_token_once(split, batch_size, context_length):
    windows = list(split.windows(batch_size, context_length))
    for x, y, places in windows:
        assert x.shape == y.shape == places.shape
        assert 1 <= x.shape[0] <= batch_size
        assert x.shape[1] == context_length
        assert x.dtype == y.dtype == places.dtype == np.int64
        assert ((y == NOTHING) == (places == NOTHING)).all()
    assert all(len(x) == batch_size for x, _, _ in windows[:-1])
    if not windows:
        assert len(split.ids) == 1
        return
    x, y, places = (np.concatenate(parts) for parts in zip(*windows, strict=True))
    there = places != NOTHING
    assert sorted(places[there]) == list(range(1, len(split.ids)))
    assert (y[there] == split.ids[places[there]]).all()
    assert (x[there] == split.ids[places[there] - 1]).all()
    assert (x[~there] == 0).all()


@settings(max_examples=150)
@given(split=splits(), context_length=st.integers(1, 40))
def test_windows_keep_documents_whole(split, context_length):
    """Where a document fits into a row, each of its tokens, and what ends it, sees all of it."""
    if split.starts is None:
        return
    ends = [*split.starts[1:].tolist(), len(split.ids) - 1]
    rows = [
        places[places != NOTHING]
        for _, _, all in split.windows(3, context_length)
        for places in all
    ]
    for start, end in zip(split.starts.tolist(), ends, strict=True):
        if 0 < end - start <= context_length:
            (row,) = [row for row in rows if start + 1 in row]
            assert row[0] <= start + 1
            assert end in row


def test_windows_pack_documents_greedily():
    split = Split(np.arange(31), 31, np.array([0, 4, 8, 12, 22]))
    rows = [(y[0, 0], (y != NOTHING).sum()) for _, y, _ in split.windows(1, 9)]
    assert rows == [(1, 8), (9, 4), (13, 9), (22, 9)]


# ------------------------------------------------------------------------------ floor, corpus


def test_a_floor_tells_loss_by_slot():
    floor = Floor(("noun", "verb", "none"), np.array([0, 0, 1, 1], np.uint8), np.arange(4.0))
    assert floor.mean == 2.0
    losses = np.array([np.nan, 1.5, 2.0, 4.0])
    assert floor.by_slot(losses) == {
        "noun": {"loss": 1.5, "floor": 1.0, "share": 0.3333},
        "verb": {"loss": 3.0, "floor": 2.5, "share": 0.6667},
    }


def corpus_of(num_train: int, num_val: int) -> Corpus:
    train, val = Split(np.arange(num_train), num_train), Split(np.arange(num_val), num_val)
    return Corpus("some.txt", Tokenizer.byte(), train, val, "")


def test_a_text_too_short_for_the_context_is_one_line():
    corpus_of(65, 2).require_room(64)
    train = "some.txt: the training part has 64 tokens"
    refused(lambda: corpus_of(64, 99).require_room(64), train, "65", "model.context_length 64")
    val = "some.txt: the validation part has 1 token"
    refused(lambda: corpus_of(999, 1).require_room(64), val, "data.val_fraction")


# ------------------------------------------------------------------------------ texts


@pytest.fixture
def opened(tmp_path):
    """A function that opens a text as a corpus: opened(path, "char", vocab_size=…)."""

    def open_it(path, kind="byte", context_length=1, **more) -> Corpus:
        settings = DataConfig(source="text", path=str(path), tokenizer=kind, **more)
        config = Config(data=settings, model=ModelConfig(context_length=context_length))
        return open_text(config, tmp_path / "cache")

    return open_it


def text_of(corpus: Corpus) -> str:
    ids = np.concatenate([corpus.train.ids, corpus.val.ids])
    return corpus.tokenizer.decode_bytes(ids).decode()


@needs_shakespeare
def test_tiny_shakespeare_has_the_numbers_that_everyone_has(opened):
    corpus = opened(SHAKESPEARE, "char", context_length=256)
    assert corpus.tokenizer.vocab_size == 65
    assert (len(corpus.train.ids), len(corpus.val.ids)) == (1_003_854, 111_540)
    assert corpus.train.ids.dtype == np.uint16
    assert text_of(corpus) == SHAKESPEARE.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("val_fraction", [0.1, 0.5, 0.123])
def test_the_split_is_at_the_same_character_for_all(tmp_path, opened, kind, val_fraction):
    text = "naïve 日本 🙂 café\n" * 50
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    corpus = opened(tmp_path / "a.txt", kind, val_fraction=val_fraction)
    cut = int(len(text) * (1 - val_fraction))
    assert corpus.tokenizer.decode(corpus.train.ids) == text[:cut]
    assert corpus.tokenizer.decode(corpus.val.ids) == text[cut:]
    assert corpus.train.num_bytes == len(text[:cut].encode())
    assert corpus.val.num_bytes == len(text[cut:].encode())


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_a_vocabulary_is_learned_from_the_training_part_alone(tmp_path, opened, kind):
    (tmp_path / "a.txt").write_text("seen words " * 90 + "unknown " * 10, encoding="utf-8")
    tokens = opened(tmp_path / "a.txt", kind, val_fraction=0.2).tokenizer.tokens
    assert b" words" in tokens
    assert not any(b"nk" in token for token in tokens)


@pytest.mark.parametrize("num_tokens", [12, 13])
def test_exactly_one_window_of_text_and_one_less(tmp_path, opened, num_tokens):
    (tmp_path / "a.txt").write_text("a" * 2 * num_tokens, encoding="utf-8")
    action = lambda: opened(tmp_path / "a.txt", context_length=12, val_fraction=0.5)  # noqa: E731
    if num_tokens == 13:
        assert len(action().val.ids) == 13
    else:
        refused(action, "a.txt", "12 tokens", "13")


def test_a_long_text_takes_several_processes_and_gives_the_same_ids(tmp_path, opened, monkeypatch):
    text = (TEXT + "naïve 日本 🙂  \r\n\n") * 80
    (tmp_path / "a.txt").write_bytes(text.encode())
    alone = opened(tmp_path / "a.txt", "bpe", vocab_size=300)
    for file in (tmp_path / "cache").iterdir():
        file.unlink()
    monkeypatch.setattr(parallel, "LONG", 1000)
    monkeypatch.setattr(parallel, "num_processes", lambda: 2)
    together = opened(tmp_path / "a.txt", "bpe", vocab_size=300)
    assert len(text) > 2 * 2**17
    assert np.array_equal(alone.train.ids, together.train.ids)
    assert np.array_equal(alone.val.ids, together.val.ids)
    whole = together.tokenizer.encoding.encode_ordinary(text[: int(len(text) * 0.9)])
    assert together.train.ids.tolist() == whole


SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


def run_program(program: Path, code: str, *arguments: str) -> subprocess.CompletedProcess:
    """Runs `code` as a program of its own, which processes may be started from."""
    program.write_text(code, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, str(program), *arguments]
    options = {"capture_output": True, "timeout": 60, "text": True, "cwd": program.parent}
    return subprocess.run(command, env=environment, check=False, **options)


@SIGNALS
def test_a_signal_while_a_text_is_tokenised_is_one_line_and_leaves_nothing(tmp_path, number):
    (tmp_path / "animals.txt").write_text(TEXT, encoding="utf-8")
    code = (
        "import os, runpy\n"
        "from minigpt.tokenizer import Tokenizer\n"
        f"Tokenizer.encode_chunk = lambda *_: os.kill(os.getpid(), {number})\n"
        f"runpy.run_path({str(REPOSITORY / 'scripts' / 'train.py')!r}, run_name='__main__')\n"
    )
    done = run_program(tmp_path / "program.py", code, "data.path=animals.txt", "--dry-run")
    assert done.stderr == "error: stopped\n"
    assert done.returncode == 128 + number
    assert not list((tmp_path / "data" / "cache").iterdir())


@SIGNALS
def test_a_signal_given_twice_is_one_line(tmp_path, number):
    code = (
        "import atexit, os\n"
        "from minigpt.errors import run_command\n"
        f"atexit.register(os.kill, os.getpid(), {number})\n"
        f"run_command(lambda _: os.kill(os.getpid(), {number}))\n"
    )
    done = run_program(tmp_path / "program.py", code)
    assert (done.returncode, done.stderr) == (128 + number, "error: stopped\n")


@SIGNALS
def test_a_signal_while_processes_start_is_one_line(tmp_path, number):
    code = (
        "import os, signal\n"
        "from minigpt.errors import run_command\n"
        "from minigpt.parallel import pool_of_processes\n"
        "def main(arguments):\n"
        "    with pool_of_processes() as pool:\n"
        "        pool.submit(len, 'word')\n"
        f"        os.killpg(0, {number})\n"
        "        pool.submit(len, 'word').result()\n"
        "if __name__ == '__main__':\n"
        "    os.setpgrp()\n"
        "    run_command(main)\n"
    )
    done = run_program(tmp_path / "program.py", code)
    assert (done.returncode, done.stderr) == (128 + number, "error: stopped\n")


@pytest.mark.parametrize("settings", [["data.path=animals.txt"], []], ids=["text", "stories"])
def test_what_a_killed_process_left_in_the_cache_is_removed(tmp_path, monkeypatch, settings):
    monkeypatch.setattr("minigpt.stories.corpus.NUM_STORIES", {"train": 9, "val": 3})
    (tmp_path / "animals.txt").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    cache = tmp_path / "cache"
    (cache / ".stories-1.77.partial").mkdir(parents=True)
    (cache / ".bpe-1.78.partial").write_text("half")
    opener = open_text if settings else open_stories
    opener(load_config(None, settings), cache)
    assert not list(cache.glob(".*"))


def test_no_process_outlives_a_killed_parent(tmp_path):
    code = (
        "import multiprocessing, os, signal\n"
        "from minigpt.parallel import pool_of_processes\n"
        "if __name__ == '__main__':\n"
        "    with pool_of_processes() as pool:\n"
        "        pool.submit(len, 'word').result()\n"
        "        print(*[child.pid for child in multiprocessing.active_children()], flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # the children hold the pipe too, so this returns only when they have ended
    done = run_program(tmp_path / "program.py", code)
    assert done.stdout.split(), done.stderr


def test_a_process_that_is_killed_is_one_line(tmp_path):
    code = (
        "import os\n"
        "from minigpt.errors import run_command\n"
        "from minigpt.parallel import pool_of_processes\n"
        "def main(arguments):\n"
        "    with pool_of_processes() as pool:\n"
        "        list(pool.map(os._exit, [9]))\n"
        "if __name__ == '__main__':\n"
        "    run_command(main)\n"
    )
    done = run_program(tmp_path / "program.py", code)
    assert done.returncode == RESOURCES
    assert len(done.stderr.splitlines()) == 1 and "a process was killed" in done.stderr


def test_a_large_vocabulary_takes_32_bits(tmp_path, opened):
    text = "".join(map(chr, range(0x20000, 0x20000 + 70_000)))
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    corpus = opened(tmp_path / "a.txt", "char")
    assert corpus.train.ids.dtype == np.uint32
    assert text_of(corpus) == text


@needs_gpt2
def test_gpt2_needs_its_vocabulary_only_once(tmp_path, opened, text_file, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(SHARED_DATA / "tiktoken_cache"))
    first = opened(text_file, "gpt2")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "none"))
    monkeypatch.setattr(vocabulary, "download", lambda *_: pytest.fail("asked the network"))
    assert opened(text_file, "gpt2").fingerprint == first.fingerprint
    assert text_of(first) == TEXT


# ------------------------------------------------------------------------------ files


def test_a_folder_is_read_in_order_with_nothing_lost(tmp_path, opened):
    folder = tmp_path / "my texts [1]"
    (folder / "b").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "a.TXT").write_bytes(b"\xef\xbb\xbffirst")
    (folder / "b" / "c.Md").write_bytes(b"second\r\n")
    (folder / "d.txt").write_bytes(b"")
    (folder / "e.txt").write_bytes(b"\xef\xbb\xbfthird\n")
    (folder / "f.text").write_bytes(b"fourth")
    (folder / "notes.py").write_bytes(b"not this")
    (folder / ".hidden.txt").write_bytes(b"nor this")
    (folder / ".git" / "x.txt").write_bytes(b"nor that")
    assert text_of(opened(folder)) == "first\nsecond\r\nthird\nfourth"


def test_patterns_name_files_of_any_ending_once(tmp_path, opened):
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "x" / "b.py").write_text("b b b\n" * 9, encoding="utf-8")
    (tmp_path / "x" / "y" / "a.py").write_text("a a a\n" * 9, encoding="utf-8")
    (tmp_path / "x" / "again.py").symlink_to(tmp_path / "x" / "b.py")
    (tmp_path / "x" / "round").symlink_to(tmp_path / "x")
    assert text_of(opened(f"{tmp_path}/x/**/*.py")) == "b b b\n" * 9 + "a a a\n" * 9
    assert text_of(opened(f"{tmp_path}/x/[ab].py")) == "b b b\n" * 9


def test_a_name_with_magic_letters_is_a_name_first(tmp_path, opened, monkeypatch):
    (tmp_path / "a[1]*.txt").write_text("magic" * 9, encoding="utf-8")
    assert text_of(opened(tmp_path / "a[1]*.txt")) == "magic" * 9
    monkeypatch.chdir(tmp_path)
    assert text_of(opened("a[1]*.txt")) == "magic" * 9


def test_links_are_followed_and_loops_end(tmp_path, opened):
    (tmp_path / "texts" / "more").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.txt").write_text("linked\n", encoding="utf-8")
    (tmp_path / "texts" / "a.txt").write_text("here\n", encoding="utf-8")
    (tmp_path / "texts" / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("loop", "again", "and again"):  # to follow them all would take for ever
        (tmp_path / "texts" / "more" / name).symlink_to(tmp_path / "texts")
    assert text_of(opened(tmp_path / "texts")) == "here\nlinked\n"


def test_places_that_hold_no_text_are_one_line(tmp_path, opened):
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(lambda: opened(empty), str(empty), "no .txt", "nothing")
    (empty / "table.csv").write_text("1,2", encoding="utf-8")
    (empty / "Makefile").write_text("all:", encoding="utf-8")
    refused(lambda: opened(empty), "only .csv, Makefile", "pattern")
    refused(lambda: opened(tmp_path / "*.rst"), "*.rst", "pattern")
    refused(lambda: opened(empty / "tabel.csv"), "did you mean", "table.csv?")
    refused(lambda: opened(tmp_path / "no" / "where.txt"), "where.txt: No such file")
    refused(lambda: opened("data/tinyshakespeare.txt"), "prepare_data.py shakespeare")
    refused(lambda: opened("x" * 5000), "too long")
    refused(lambda: opened("nul\0.txt"), "null")
    refused(lambda: opened(empty / "table.csv" / "b.txt"), "Not a directory")


def test_what_is_no_regular_file_is_one_line(tmp_path, opened):
    os.mkfifo(tmp_path / "pipe.txt")
    refused(lambda: opened(tmp_path / "pipe.txt"), "pipe.txt", "not a regular file")
    refused(lambda: opened(tmp_path), "pipe.txt", "not a regular file")
    refused(lambda: opened("/dev/zero"), "/dev/zero", "not a regular file")
    (tmp_path / "pipe.txt").unlink()
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    refused(lambda: opened(tmp_path / "loop.txt"), "loop.txt", "Too many levels")
    refused(lambda: opened(tmp_path), "loop.txt", "Too many levels")
    (tmp_path / "loop.txt").unlink()
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
    refused(lambda: opened(tmp_path), "gone.txt", "No such file")
    (tmp_path / "gone.txt").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket.txt"))
        refused(lambda: opened(tmp_path), "socket.txt", "not a regular file")


def test_a_file_that_may_not_be_read_is_one_line(tmp_path, opened, monkeypatch):
    file = tmp_path / "secret.txt"
    file.write_text(TEXT, encoding="utf-8")
    file.chmod(0)
    if os.access(file, os.R_OK):  # the superuser reads everything

        def denied(*_, **__):
            raise PermissionError(13, "Permission denied", str(file))

        monkeypatch.setattr(Path, "open", denied)
    refused(lambda: opened(file), "secret.txt: Permission denied")


def test_a_disk_that_fails_is_one_line(opened, text_file, monkeypatch):
    def broken(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(text_files.hashlib, "file_digest", broken)
    refused(lambda: opened(text_file), "animals.txt: Input/output error")


# ------------------------------------------------------------------------------ dirty texts


PAD = "Some words, first.\n" * 20
SURE = PAD.encode()
LONG_LINE = "word " * 60_000
DIRTY = {  # name: (bytes, encoding, the text it is, or what the refusal says)
    "empty": (b"", "utf-8", ["empty"]),
    "only a mark": (b"\xef\xbb\xbf", "utf-8", ["empty"]),
    "one byte": (b"a", "utf-8", ["0 tokens"]),
    "two bytes": (b"ab", "utf-8", ["1 token"]),
    "one line break": (b"\n", "utf-8", ["0 tokens"]),
    "only blanks": (b" \t\n" * 99, "utf-8", " \t\n" * 99),
    "only line breaks": (b"\n" * 300_000, "utf-8", "\n" * 300_000),
    "byte order mark": (b"\xef\xbb\xbf" + SURE, "utf-8", PAD),
    "two marks": (b"\xef\xbb\xbf" * 2 + SURE, "utf-8", "\ufeff" + PAD),
    "mark inside": (SURE + b"\xef\xbb\xbf" + SURE, "utf-8", PAD + "\ufeff" + PAD),
    "CRLF": (SURE.replace(b"\n", b"\r\n"), "utf-8", PAD.replace("\n", "\r\n")),
    "CR": (SURE.replace(b"\n", b"\r"), "utf-8", PAD.replace("\n", "\r")),
    "mixed breaks": (b"a\r\nb\rc\nd\n\re" * 20, "utf-8", "a\r\nb\rc\nd\n\re" * 20),
    "unicode breaks": ("a\u2028b\u2029c\x85d\x0be\x0c".encode() * 20, "utf-8", None),
    "no last break": (SURE + b"end", "utf-8", PAD + "end"),
    "latin-1": (SURE + "café".encode("latin-1") + SURE, "utf-8", ["byte 383", "data.encoding"]),
    "latin-1 named": ("café ÿ\n".encode("latin-1") * 20, "latin-1", "café ÿ\n" * 20),
    "cp1252": (b"\x93quoted\x94 " * 20, "utf-8", ["byte 0 ", "cp1252"]),
    "cp1252 named": (b"\x93quoted\x94 " * 20, "cp1252", "“quoted” " * 20),
    "cp1252 undefined": (SURE + b"\x81", "cp1252", ["byte 380", "cp1252"]),
    "ascii named": (SURE + b"\xc3", "ascii", ["byte 380"]),
    "shift-jis": ("日本語\n".encode("shift-jis") * 30, "shift-jis", "日本語\n" * 30),
    "utf-16": (PAD.encode("utf-16"), "utf-8", ["byte 0 ", "data.encoding=utf-16"]),
    "utf-16 named": (PAD.encode("utf-16"), "utf-16", PAD),
    "utf-16 big": (b"\xfe\xff" + PAD.encode("utf-16-be"), "utf-8", ["data.encoding=utf-16"]),
    "utf-16 big named": (b"\xfe\xff" + PAD.encode("utf-16-be"), "utf-16", PAD),
    "utf-16 bare": (PAD.encode("utf-16-le"), "utf-8", ["character 1 is NUL", "utf-16-le"]),
    "utf-16 bare named": (PAD.encode("utf-16-le"), "utf-16-le", PAD),
    "utf-16 odd": (PAD.encode("utf-16") + b"a", "utf-16", ["byte 762", "truncated"]),
    "utf-32 named": (PAD.encode("utf-32"), "utf-32", PAD),
    "cut at the end": (SURE + "日".encode()[:2], "utf-8", ["byte 380", "unexpected end"]),
    "cut inside": (SURE + "🙂".encode()[:3] + SURE, "utf-8", ["byte 380", "continuation"]),
    "overlong": (SURE + b"\xc0\x80", "utf-8", ["byte 380", "start byte"]),
    "surrogate": (SURE + b"\xed\xa0\x80", "utf-8", ["byte 380"]),
    "beyond unicode": (SURE + b"\xf4\x90\x80\x80", "utf-8", ["byte 380"]),
    "NUL early": (b"ab\0cd" + SURE, "utf-8", ["character 2 is NUL", "binary"]),
    "NUL late": (SURE * 30 + b"\0" + SURE, "utf-8", PAD * 30 + "\0" + PAD),
    "all bytes": (bytes(range(256)) * 4, "utf-8", ["byte 128"]),
    "all bytes latin-1": (bytes(range(256)), "latin-1", ["character 0 is NUL"]),
    "control characters": (bytes(range(1, 128)) * 3, "utf-8", None),
    "png": (b"\x89PNG\r\n\x1a\n\0\0" + SURE, "utf-8", ["byte 0 "]),
    "elf": (b"\x7fELF\x02\x01\x01\0" + SURE, "utf-8", ["NUL", "binary"]),
    "gzip": (b"\x1f\x8b\x08\0" + SURE, "utf-8", ["byte 1 "]),
    "long line": (LONG_LINE.encode(), "utf-8", LONG_LINE),
    "no blank": (b"x" * 300_000, "utf-8", "x" * 300_000),
    "blanks and a letter": (b" " * 300_000 + b"x" * 9, "utf-8", None),
    "emoji": ("👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽\n".encode() * 20, "utf-8", None),
    "right to left": ("مرحبا \u202eabc\u202c שלום\n".encode() * 20, "utf-8", None),
    "combining": ("e\u0301 a\u0328\u0301 ก็\n".encode() * 20, "utf-8", None),
    "astral": ("𝔘𝔫𝔦\U0010ffff\U000e0001\n".encode() * 20, "utf-8", None),
    "special tokens": (b"<|endoftext|> <s> [PAD] <|im_start|>\n" * 20, "utf-8", None),
    "html": (b"</script><!-- & &amp; -->\n" * 20, "utf-8", None),
    "unknown encoding": (SURE, "utf-9", ["data.encoding", "utf-9"]),
    "no text encoding": (SURE, "rot13", ["data.encoding", "rot13"]),
    "odd encoding": (SURE, "idna\0", ["data.encoding"]),
}


def check_dirty(name: str, folder: Path, open_it) -> str | None:
    """The text of a corpus in `DIRTY`; None where it was refused as it should be."""
    data, codec, expected = DIRTY[name]
    file = folder / "dirty.txt"
    file.write_bytes(data)
    if isinstance(expected, list):
        words = expected if "data.encoding" in expected[0] else [str(file), *expected]
        refused(lambda: open_it(file, encoding=codec), *words)
        assert not list(folder.glob("cache/*.partial"))
        return None
    return data.decode() if expected is None else expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DIRTY)
def test_a_dirty_text_is_kept_exactly_or_refused_in_one_line(name, kind, tmp_path, opened):
    def open_it(file, **more):
        return opened(file, kind, vocab_size=300, val_fraction=0.3, **more)

    text = check_dirty(name, tmp_path, open_it)
    if text is not None:
        corpus = open_it(tmp_path / "dirty.txt", encoding=DIRTY[name][1])
        assert text_of(corpus) == text
        assert corpus.train.num_bytes + corpus.val.num_bytes == len(text.encode())


@needs_gpt2
def test_gpt2_keeps_dirty_texts_exactly(monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(SHARED_DATA / "tiktoken_cache"))
    gpt2 = vocabulary.gpt2()
    for data, codec, expected in DIRTY.values():
        if not isinstance(expected, list):
            text = expected or data.decode(codec)
            assert gpt2.decode(gpt2.encode(text)) == text


@pytest.mark.parametrize("shift", range(-3, 4))
def test_characters_may_lie_across_blocks(tmp_path, opened, monkeypatch, shift):
    monkeypatch.setattr(text_files, "BLOCK", 64)
    text = "x" * (64 + shift) + "🙂日é" * 30
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert text_of(opened(tmp_path / "a.txt")) == text
    place = len(text.encode())
    (tmp_path / "b.txt").write_bytes(text.encode() + "🙂".encode()[:3] + b"a")
    refused(lambda: opened(tmp_path / "b.txt"), f"byte {place} ")
    (tmp_path / "c.txt").write_bytes(text.encode() + "🙂".encode()[:3])
    refused(lambda: opened(tmp_path / "c.txt"), f"byte {place} ", "unexpected end")


def test_a_later_file_is_named_when_it_is_the_one(tmp_path, opened):
    (tmp_path / "a.txt").write_text(PAD, encoding="utf-8")
    (tmp_path / "b.txt").write_bytes(b"caf\xe9 au lait")
    refused(lambda: opened(tmp_path), "b.txt: byte 3 ")


# ------------------------------------------------------------------------------ the cache


def cached(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in (folder / "cache").iterdir()}


def is_mapped(array: np.ndarray | None) -> bool:
    return array is not None and (isinstance(array, np.memmap) or is_mapped(array.base))


@pytest.fixture
def written(tmp_path, opened):
    """A text with its corpus, already tokenised."""
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    opened(tmp_path / "a.txt", "bpe")
    return tmp_path / "a.txt"


def test_a_second_run_tokenises_nothing(tmp_path, written, opened, monkeypatch):
    before = cached(tmp_path)
    first = opened(written, "bpe")
    monkeypatch.setattr(Tokenizer, "encode_chunk", lambda *_: pytest.fail("tokenised again"))
    written.rename(tmp_path / "b.txt")
    second = opened(tmp_path / "b.txt", "bpe", context_length=9)
    assert cached(tmp_path) == before
    assert sorted(Path(name).suffix for name in before) == [".ids", ".json"]
    assert second.fingerprint == first.fingerprint
    assert is_mapped(second.train.ids)


@pytest.mark.parametrize(
    "change",
    [{"kind": "char"}, {"vocab_size": 300}, {"val_fraction": 0.2}, {"encoding": "latin-1"}],
    ids=str,
)
def test_another_setting_is_another_corpus(written, opened, change):
    first = opened(written, "bpe")
    second = opened(written, **({"kind": "bpe"} | change))
    assert second.fingerprint != first.fingerprint
    assert opened(written, "bpe").fingerprint == first.fingerprint


def test_settings_that_change_nothing_keep_the_corpus(written, opened):
    first = opened(written, "char", vocab_size=300)
    assert opened(written, "char", vocab_size=400).fingerprint == first.fingerprint
    assert opened(written, "char", encoding="UTF8").fingerprint == first.fingerprint


def test_another_text_of_the_same_size_and_time_is_another_corpus(written, opened):
    status = written.stat()
    written.write_text(TEXT.replace("dog", "pig"), encoding="utf-8")
    os.utime(written, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert "pig" in text_of(opened(written, "bpe"))


@pytest.mark.parametrize("suffix", [".ids", ".json"])
@pytest.mark.parametrize("damage", ["cut", "empty", "gone", "longer", "flipped"])
def test_damage_in_the_cache_is_noticed(tmp_path, written, opened, suffix, damage):
    first = opened(written, "bpe")
    (file,) = (tmp_path / "cache").glob(f"*{suffix}")
    data = file.read_bytes()
    file.unlink()
    flipped = data[:50] + bytes([data[50] ^ 4]) + data[51:]
    found = {"cut": data[:-9], "empty": b"", "longer": data + b"\0", "flipped": flipped}
    if damage != "gone":
        file.write_bytes(found[damage])
    again = opened(written, "bpe")
    assert text_of(again) == TEXT
    assert again.fingerprint == first.fingerprint
    assert file.read_bytes() == data


def test_a_text_that_changes_while_it_is_read_is_not_kept(tmp_path, opened, monkeypatch):
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    encode_chunk = Tokenizer.encode_chunk

    def changing(self, text):
        (tmp_path / "a.txt").write_text(TEXT + "more", encoding="utf-8")
        return encode_chunk(self, text)

    monkeypatch.setattr(Tokenizer, "encode_chunk", changing)
    refused(lambda: opened(tmp_path / "a.txt"), "a.txt", "changed while it was read")
    assert cached(tmp_path) == {}


def test_an_interrupted_reading_leaves_nothing(tmp_path, opened, monkeypatch):
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Tokenizer, "encode_chunk", interrupted)
    with pytest.raises(KeyboardInterrupt):
        opened(tmp_path / "a.txt")
    assert cached(tmp_path) == {}


def test_an_open_corpus_outlives_its_text_and_its_cache(tmp_path, written, opened):
    corpus = opened(written, "bpe")
    written.unlink()
    for file in (tmp_path / "cache").iterdir():
        file.unlink()
    assert text_of(corpus) == TEXT


# ------------------------------------------------------------------------------ prepare_data.py


def test_prepare_data_takes_nothing_but_tiny_shakespeare(tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("To be", encoding="utf-8")
    for source, word in ((other, "is not tiny Shakespeare"), (tmp_path / "none", "No such file")):
        done = run_script("prepare_data.py", "shakespeare", "--from", str(source), cwd=tmp_path)
        assert done.returncode == DATA
        assert word in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "data").exists()


@needs_shakespeare
def test_prepare_data_takes_a_local_copy(tmp_path, monkeypatch):
    done = run_script("prepare_data.py", "shakespeare", "--from", str(SHAKESPEARE), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = tmp_path / "data" / "tinyshakespeare.txt"
    assert made.read_bytes() == SHAKESPEARE.read_bytes()
    assert list(made.parent.iterdir()) == [made]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(download, "download", lambda *_: pytest.fail("asked the network"))
    download.prepare_shakespeare()


def test_prepare_data_without_network_tells_of_from(tmp_path, monkeypatch):
    def no_network(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    target = tmp_path / "data" / "a.txt"
    refused(lambda: download.prepare_shakespeare(None, target), "no network", "--from FILE")
    assert not target.parent.exists()


def test_what_arrives_must_be_what_was_meant(tmp_path, monkeypatch):
    class Answer:
        headers: dict = {}
        blocks = [b"<html>", b"404"]

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def read(self, _):
            return self.blocks.pop(0) if self.blocks else b""

    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: Answer())
    refused(lambda: download.prepare_shakespeare(None, tmp_path / "a.txt"), "9 bytes", "--from")
    assert not (tmp_path / "a.txt").exists()


def test_texts_are_read_without_pytorch():
    code = "import sys, minigpt.text; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True)
