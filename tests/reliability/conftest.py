"""Fixtures of the reliability battery: above all, the golden run."""

import os

import pytest
from hypothesis import settings

import minigpt
from minigpt import loss_plot

from .golden import golden_in

settings.register_profile("battery", deadline=None, derandomize=True, print_blob=True)
UNDER_TEST = "MINIGPT_UNDER_TEST"  # a copy of the package with a fault in it

if UNDER_TEST in os.environ:
    assert list(minigpt.__path__) == [os.environ[UNDER_TEST]]


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_plot, "draw_loss", lambda *_: None)
        return golden_in(tmp_path_factory.mktemp("golden"))


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch):
    """The picture of the loss takes longer than a whole run; test_trainer.py looks at it."""
    monkeypatch.setattr(loss_plot, "draw_loss", lambda *_: None)
