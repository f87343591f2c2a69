"""What a training takes where a setting leaves it open: the number format, the threads."""

import os
import subprocess
import sys

import pytest
import torch
from conftest import REPOSITORY, TINY

from minigpt import choosing
from minigpt.command_line import load_config
from minigpt.config import Config

LARGE = load_config(None, ["embed_dim=384", "batch_size=32", "feed_forward_multiple=4"])


@pytest.mark.parametrize(("pays", "chosen"), [(1e-3, "bfloat16"), (1e3, "float32")])
def test_the_faster_format_is_found_by_timing_and_only_for_large_products(
    monkeypatch, pays, chosen
):
    monkeypatch.setattr(choosing, "PAYS", pays)
    assert choosing.faster_precision(Config()) == ("float32", None)  # the default is one everywhere
    found, line = choosing.faster_precision(LARGE)
    assert found == chosen
    assert line.startswith(f"{chosen}, as products in bfloat16 are ")


def test_what_is_set_is_left_alone():
    config = load_config(None, ["precision=bfloat16", "threads=1", "device=cpu"])
    assert choosing.with_choices(config) == (config, [])


def test_a_training_uses_the_threads_that_were_asked_for_and_gives_them_back():
    before = torch.get_num_threads()
    with choosing.using_threads(1):
        assert torch.get_num_threads() == 1
    with choosing.using_threads(1000):  # as in a run that a larger machine began
        assert torch.get_num_threads() == choosing.processors()
    assert torch.get_num_threads() == before


CROWDED = """
import os
import torch
from minigpt import choosing
from minigpt.config import Config

seen = 16 * len(os.sched_getaffinity(0))  # as in a container that may use few of many processors
choosing.processors = lambda: seen
torch.set_num_threads(seen)
print(seen, *choosing.fastest_threads(Config()), sep="|")
os.environ["OMP_NUM_THREADS"] = "32"
assert choosing.fastest_threads(Config()) == (None, None)
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="asks Linux for its processors")
def test_of_many_threads_only_those_are_used_that_have_a_processor():
    without = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    one = {min(os.sched_getaffinity(0))}
    done = subprocess.run(
        [sys.executable, "-c", CROWDED],
        cwd=REPOSITORY,
        env=without,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: os.sched_setaffinity(0, one),
    )
    assert done.returncode == 0, done.stderr
    seen, threads, line = done.stdout.strip().split("|")
    assert int(threads) < int(seen)
    assert line == f"{threads} of {seen} threads, the fastest of those tried"


@pytest.mark.skipif(torch.get_num_threads() > choosing.FEW, reason="has more than a few threads")
def test_few_threads_are_all_used(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert choosing.fastest_threads(load_config(None, TINY)) == (None, None)
