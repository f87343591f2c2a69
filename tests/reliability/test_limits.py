"""E: no room on the disk or in memory: one line that says what was needed, what there is, where."""

import os
import re
import resource
from pathlib import Path

import pytest

from minigpt.errors import RESOURCES
from minigpt.text import open_text
from minigpt.trainer import train

from .golden import ended, errors_in, forked, strays

pytestmark = pytest.mark.filterwarnings("ignore:.*fork")


def limited(kind, most):
    resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


@pytest.mark.parametrize("most", [0, 100, 1000, 4000, 6000, 8000])
def test_a_full_disk_is_one_line(golden, tmp_path, record, most):
    run_dir, said, cache = tmp_path / "run", tmp_path / "said", tmp_path / "cache"
    reader, writer = os.pipe()  # which has no limit, as a file would

    def work():
        limited(resource.RLIMIT_FSIZE, most)
        return train(golden.config(), open_text(golden.config(), cache), run_dir)

    code = ended(forked(work, Path(f"/dev/fd/{writer}")))
    said.write_bytes(os.read(reader, 2**16))
    os.close(reader)
    os.close(writer)
    (line,) = errors_in(said)
    assert code == RESOURCES
    assert re.search(rf"{tmp_path}\S+: the disk is full \(.*[\d.]+ MiB free\); make room", line)
    assert not strays(tmp_path)
    record("E", 1)


def memory_used():
    words = Path("/proc/self/statm").read_text().split()
    return int(words[0]) * resource.getpagesize()


HUNGRY = {
    "a wide model": ["embed_dim=16384", "num_heads=1"],
    "a deep model": ["embed_dim=2048", "num_layers=64", "num_heads=1"],
    "many rows": ["batch_size=500000"],
    "a long context": ["context_length=3000", "batch_size=500", "embed_dim=64", "num_heads=1"],
    "wide feed-forward": ["embed_dim=2048", "num_heads=1", "feed_forward_multiple=64"],
    "many rows and much width": ["embed_dim=512", "num_heads=1", "batch_size=20000"],
}


@pytest.mark.parametrize("what", HUNGRY)
def test_too_little_memory_is_one_line(golden, tmp_path, record, what):
    run_dir, said = tmp_path / "run", tmp_path / "said"

    def work():
        limited(resource.RLIMIT_AS, memory_used() + 300 * 2**20)
        return golden.train(run_dir, *HUNGRY[what])

    code = ended(forked(work, said))
    (line,) = errors_in(said)
    assert code == RESOURCES, line
    assert re.match(
        r"error: memory: not enough of it \((.* asked for, )?\d+ MiB in all\); use", line
    )
    assert not strays(tmp_path)
    record("E", 1)
