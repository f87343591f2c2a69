"""The same cases for what anyone has: counts for RELIABILITY.md, not promises."""

import io
import math
import os
import signal
import sys
import time

import pytest
import torch
from conftest import TEXT

from .control import Control, settings
from .golden import again, ended, forked
from .test_corruption import damaged
from .test_dirty_texts import READ, REFUSED

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings("ignore")]


def equal(first, second):
    pairs = zip(first.model.state_dict().values(), second.model.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_kills(tmp_path, record):
    """Killed and resumed, does it end as the uninterrupted one?"""
    whole, good = Control(TEXT), 0
    whole.run(tmp_path / "whole.pt", 600, 5)
    for case in range(20):
        path = tmp_path / f"{case}.pt"
        random = again("control", case)
        pid = forked(lambda path=path: Control(TEXT).run(path, 600, 5), tmp_path / "said")
        time.sleep(random.uniform(0.05, 0.5))
        os.kill(pid, signal.SIGKILL)
        ended(pid)
        resumed = Control(TEXT)
        try:
            resumed.run(path, 600, 5)
            good += equal(whole, resumed)
        except Exception as error:
            print(type(error), file=sys.stderr)
    record("control A2", 20)
    record("control A2 held", good)


def test_corruption(record):
    control, content = Control(TEXT), io.BytesIO()
    control.train_step()
    control.save(content)
    seen = 0
    for case in range(1500):
        data = damaged(content.getvalue(), again("control", case))
        try:
            Control(TEXT).load(io.BytesIO(data))
        except Exception:
            seen += 1
    record("control A4", 1500)
    record("control A4 held", seen)


def test_resume(tmp_path, record):
    good = 0
    whole = Control(TEXT)
    whole.run(tmp_path / "whole.pt", 20, 99)
    for step in range(1, 17):
        path = tmp_path / f"{step}.pt"
        Control(TEXT).run(path, step, step)
        resumed = Control(TEXT)
        resumed.run(path, 20, 99)
        good += equal(whole, resumed)
    record("control B1", 16)
    record("control B1 held", good)


def test_non_finite(tmp_path, record):
    good = 0
    for value in (math.nan, math.inf, -math.inf):
        for index in range(5):
            control = Control(TEXT)
            weight = list(control.model.parameters())[index]
            with torch.no_grad():
                weight.view(-1)[0] = value
            try:
                control.run(tmp_path / "x.pt", 3, 1)
            except Exception:
                good += 1
            (tmp_path / "x.pt").unlink(missing_ok=True)
    record("control D", 15)
    record("control D held", good)


WRONG = ["max_stesp=1", "max_steps=-1", "max_steps=abc", "max_steps=1e999", "max_steps=1.5"]
WRONG += ["learning_rate=-1", "learning_rate=yes", "device=tpu", "max_steps", "max_steps=True"]


def test_settings(record):
    """Refused, in one line without a traceback: a ValueError with words of its own counts."""
    good = 0
    for wrong in WRONG:
        try:
            settings([wrong])
        except ValueError as error:
            good += "Unknown config key" in str(error)
    record("control H", len(WRONG))
    record("control H held", good)


def test_texts(tmp_path, record):
    """Comes back exactly, or is refused with the name of the file."""
    good, cases = 0, READ | REFUSED
    for name, data in cases.items():
        path = tmp_path / "text.txt"
        path.write_bytes(data)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            characters = sorted(set(text))
            ids = [characters.index(c) for c in text[:5000]]
            back = "".join(characters[i] for i in ids).encode()
            whole = data.removeprefix(b"\xef\xbb\xbf").decode()[:5000].encode()
            good += name in READ and back == whole
        except Exception as error:
            good += str(path) in str(error)
    record("control K", len(cases))
    record("control K held", good)
