"""The benchmark compares like with like and writes down what it found; times are not judged."""

import json

import pytest
from conftest import run_script


def test_four_ways_are_measured_forward_and_backward(tmp_path):
    done = run_script("benchmark.py", "attention", "--quick", "--json=found.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 heads or more: ours is faster than heads in series in" in done.stdout
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert {"processor", "threads", "torch"} <= set(found["machine"])
    assert [(case["tokens"], case["heads"]) for case in found["cases"]] == [
        (16, 1),
        (256, 1),
        (16, 4),
        (256, 4),
    ]
    for case in found["cases"]:
        for times in (case["forward"], case["both"]):
            assert set(times) == {"ours", "series", "torch", "bare"}
            assert min(times.values()) > 0


@pytest.mark.parametrize("arguments", [[], ["attention", "--threads=0"], ["speed"]])
def test_mistakes_are_one_line(tmp_path, arguments):
    done = run_script("benchmark.py", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
