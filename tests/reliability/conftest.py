"""Fixtures of the reliability battery: the golden run, and counts for RELIABILITY.md."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import settings

import minigpt
from minigpt import trainer

from .golden import golden_in

settings.register_profile("battery", deadline=None, derandomize=True, print_blob=True)
COUNTS = "MINIGPT_COUNTS"  # where to write them, if anywhere
UNDER_TEST = "MINIGPT_UNDER_TEST"  # a copy of the package with a fault in it
found: list[tuple[str, str, int, float]] = []

if UNDER_TEST in os.environ:
    assert list(minigpt.__path__) == [os.environ[UNDER_TEST]]


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "draw_loss", lambda *_: None)
        return golden_in(tmp_path_factory.mktemp("golden"))


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch):
    """The picture of the loss takes longer than a whole run; test_trainer.py looks at it."""
    monkeypatch.setattr(trainer, "draw_loss", lambda *_: None)


@pytest.fixture
def record(record_property):
    """record("A1", 400): so many cases of a promise were tried; they count if the test passes."""

    def note(promise: str, how_many: int) -> None:
        record_property("counted", [promise, how_many])

    return note


def pytest_runtest_logreport(report):
    if report.when == "call" and report.outcome != "skipped":
        counted = [value for name, value in report.user_properties if name == "counted"]
        if "test_explorer_payloads.py" in report.nodeid:
            counted = [("G", 1)]
        for promise, how_many in counted:
            found.append((promise, report.outcome, how_many, report.duration / len(counted)))


def pytest_sessionfinish(session):
    if COUNTS in os.environ and not hasattr(session.config, "workerinput"):
        Path(os.environ[COUNTS]).write_text(json.dumps(found), encoding="utf-8")
