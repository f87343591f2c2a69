"""What many tests need: a small text, a run trained on it by the real code, and counts.

A promise of RELIABILITY.md counts the cases of its tests that pass: each test marked with
`promise("N")` is one, and `record("A1", 400)` in a test notes many.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two test processes share two cores
settings.register_profile("steady", deadline=None)  # a busy machine is no mistake
settings.load_profile("steady")
COUNTS = "MINIGPT_COUNTS"  # where to write them, if anywhere
REPOSITORY = Path(__file__).parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"
TEXT = "".join(
    f"The {colour} {animal} saw a {other}.\nIt ran to the {place}, and the {other} sang: "
    f"{sound}, {sound}!\n"
    for colour in ("red", "old", "small")
    for animal, sound in (("dog", "wuff"), ("cat", "mew"), ("owl", "hoo"))
    for other in ("bird", "fox", "hen")
    for place in ("hill", "sea")
)
TINY = [
    "model.num_layers=2",
    "model.num_heads=2",
    "model.embed_dim=16",
    "model.context_length=24",
    "train.batch_size=4",
    "train.max_steps=12",
    "train.eval_interval=5",
    "train.sample_interval=5",
    "train.log_interval=1",
    "sample.max_new_tokens=20",
    "device=cpu",
]


def run_script(*arguments: str, cwd: Path, **options) -> subprocess.CompletedProcess:
    """Runs `scripts/...` as a user does, in the folder `cwd`."""
    script, *rest = arguments
    command = [sys.executable, str(REPOSITORY / "scripts" / script), *rest]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"} | options.pop("env", {})
    options = {"capture_output": True, "encoding": "utf-8", "timeout": 120} | options
    return subprocess.run(command, cwd=cwd, env=environment, check=False, **options)


@pytest.fixture(scope="session")
def text_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("text") / "animals.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory, text_file) -> Path:
    """A run directory made by `scripts/train.py` in a few seconds; tests only read it."""
    folder = tmp_path_factory.mktemp("home")
    done = run_script("train.py", f"data.path={text_file}", "run_dir=runs/tiny", *TINY, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "runs" / "tiny"


# ------------------------------------------------------------------------------ counts

counted: list[tuple[str, str, int, float]] = []


@pytest.fixture
def record(request):
    """record("A1", 400): so many cases of a promise were tried; they count if the test passes."""

    def note(promise: str, how_many: int) -> None:
        request.node.user_properties.append(("counted", [promise, how_many]))

    return note


def pytest_runtest_setup(item):
    for mark in item.iter_markers("promise"):
        item.user_properties.append(("counted", [*mark.args, 1]))


def pytest_runtest_logreport(report):
    if report.when == "call" and report.outcome != "skipped":
        noted = [value for name, value in report.user_properties if name == "counted"]
        for promise, how_many in noted:
            counted.append((promise, report.outcome, how_many, report.duration / len(noted)))


def pytest_sessionfinish(session):
    if COUNTS in os.environ and not hasattr(session.config, "workerinput"):
        Path(os.environ[COUNTS]).write_text(json.dumps(counted), encoding="utf-8")
