"""J: the same settings make the same bytes, wherever and by whomever they are run."""

import os
import subprocess
import sys

import pytest
from conftest import REPOSITORY

from minigpt import saved_runs

from .golden import SETTINGS, STEPS

SURROUNDINGS = {
    "another hash seed": {"PYTHONHASHSEED": "77"},
    "another folder": {},
    "another language": {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"},
    "another time zone": {"TZ": "Pacific/Chatham"},
    "an umask": {"PYTHONHASHSEED": "0"},
    "another name": {"HOME": "/nonexistent", "USER": "somebody"},
}


@pytest.mark.parametrize("case", SURROUNDINGS)
def test_the_same_settings_are_the_same_bytes(golden, tmp_path, record, case):
    home = tmp_path / ("a folder, ü" if case == "another folder" else "home")
    home.mkdir()
    script = REPOSITORY / "scripts" / "train.py"
    settings = [f"data.path={golden.text}", *SETTINGS, "run_dir=run"]
    umask = 0o077 if case == "an umask" else -1
    done = subprocess.run(
        [sys.executable, str(script), *settings],
        cwd=home,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | SURROUNDINGS[case],
        umask=umask,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    golden.require(home / "run", STEPS)
    newest = saved_runs.checkpoints(home / "run")[-1]
    assert (home / "run" / "tokenizer.json").read_bytes() == (
        golden.run_dir / "tokenizer.json"
    ).read_bytes()
    assert (newest.stat().st_mode & 0o077 == 0) == (case == "an umask")
    record("J", 1)
