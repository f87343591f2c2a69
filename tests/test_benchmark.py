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


@pytest.mark.parametrize(
    "arguments", [[], ["attention", "--threads=0"], ["attention", "--threads=99999"], ["speed"]]
)
def test_mistakes_are_one_line(tmp_path, arguments):
    done = run_script("benchmark.py", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("question", "ours"), [("train", {"ours float32", "ours bfloat16"}), ("generate", {"ours"})]
)
def test_peers_that_are_there_are_measured_beside_ours(tmp_path, question, ours):
    done = run_script("benchmark.py", question, "--quick", "--json=found.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    (case,) = found["cases"]
    assert set(case["tokens a second"]) == ours | {"transformers"}
    assert min(case["tokens a second"].values()) > 0


def test_a_folder_that_is_no_nanogpt_is_told(tmp_path):
    done = run_script("benchmark.py", "train", "--quick", "--nanogpt=.", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.strip() == "error: --nanogpt .: there is no model.py; name a checkout"


def test_a_speedrun_without_its_text_is_told(tmp_path):
    done = run_script("benchmark.py", "speedrun", cwd=tmp_path)
    assert done.returncode == 3
    where = "data/tinyshakespeare.txt: there is no such file; prepare_data.py shakespeare makes it"
    assert done.stderr.strip() == f"error: {where}"


def test_a_speedrun_is_a_training_to_a_loss(tmp_path, text_file):
    words = ["--quick", f"--text={text_file}", "--json=found.json"]
    done = run_script("benchmark.py", "speedrun", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert found["seconds"]["ours"] > 0 and found["losses"]["ours"] > 0


def test_a_training_that_fails_in_a_speedrun_says_why(tmp_path):
    (tmp_path / "short.txt").write_text("too short\n")
    done = run_script("benchmark.py", "speedrun", "--quick", "--text=short.txt", cwd=tmp_path)
    assert done.returncode == 3
    (line,) = done.stderr.strip().splitlines()
    assert "train.py failed: " in line and "give more text" in line


SPEEDRUN = {
    "question": "speedrun",
    "machine": {"processor": "P", "cores": 2, "threads": 2, "torch": "2", "python": "3"},
    "seconds": {"nanoGPT": 70.0, "ours": 8.75},
    "losses": {"nanoGPT": 1.8857, "ours": 1.8359},
}


def test_a_race_is_told_as_a_ratio(tmp_path):
    (tmp_path / "race.json").write_text(json.dumps(SPEEDRUN))
    assert run_script("benchmark.py", "report", "race.json", cwd=tmp_path).returncode == 0
    page = (tmp_path / "BENCHMARKS.md").read_text(encoding="utf-8")
    assert "| ours | 8.8 | 1.8359 |  |\n| nanoGPT | 70.0 | 1.8857 | 8.0 × as long |" in page


def test_results_become_a_page(tmp_path):
    for question in ("attention", "train", "generate", "tokenize"):
        name = f"--json={question}.json"
        done = run_script("benchmark.py", question, "--quick", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    files = [f"{name}.json" for name in ("attention", "train", "generate", "tokenize")]
    done = run_script("benchmark.py", "report", *files, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "BENCHMARKS.md").read_text(encoding="utf-8")
    assert "| 2 × 32, 32, 1 | " in page and "ours is faster than heads in series" in page
    assert "| 2 MB, 1,024 | " in page
    assert "Width 32: reading every weight once a token" in page
    assert "| ours bfloat16 | ours float32 | transformers |" in page


RATES = json.dumps({"question": "train", "cases": [{"tokens a second": {"ours": 1, "b": 0}}]})
ODD = ["", "[]", "7", "{}", "[" * 100_000, '{"question": []}', '{"question": "train", "cases": []}']
ODD += [RATES, '{"question": "inspect", "milliseconds": {"ours": NaN, "TransformerLens": 1}}']


@pytest.mark.parametrize("content", ODD)
def test_a_file_that_is_no_result_is_one_line(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    done = run_script("benchmark.py", "report", "a.json", cwd=tmp_path)
    assert done.returncode == 3
    assert "a.json: is no result of a benchmark" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "BENCHMARKS.md").exists()


def test_the_start_is_measured(tmp_path):
    done = run_script("benchmark.py", "startup", "--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "first training step" in done.stdout


def test_looking_at_heads_is_measured_beside_transformer_lens(tmp_path):
    pytest.importorskip("transformer_lens", reason="transformer-lens is not installed")
    done = run_script("benchmark.py", "inspect", "--quick", "--json=found.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run_script("benchmark.py", "report", "found.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "BENCHMARKS.md").read_text(encoding="utf-8")
    assert "| ours | TransformerLens |" in page
