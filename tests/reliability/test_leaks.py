"""L: a long training needs no more memory, files or disk than a short one."""

import json
import os
import resource
from pathlib import Path

import numpy as np
import pytest

from minigpt import saved_runs

from .golden import ended, errors_in, forked

pytestmark = pytest.mark.filterwarnings("ignore:.*fork")
STEPS = 800


def test_nothing_leaks(golden, tmp_path, record):
    run_dir, said, out = tmp_path / "run", tmp_path / "said", tmp_path / "measured"
    settings = [f"max_steps={STEPS}", "eval_interval=10", "save_interval=10", "sample_interval=10"]
    measured = []

    def look(step, model):
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        files = len(os.listdir("/proc/self/fd"))
        measured.append((step, resident, files, len(saved_runs.checkpoints(run_dir))))

    def work():
        golden.train(run_dir, *settings, "log_interval=10", observers=[look])
        out.write_text(json.dumps(measured))

    assert ended(forked(work, said)) == 0, said.read_text()
    assert not errors_in(said)
    steps, resident, files, kept = np.array(json.loads(out.read_text())).T
    later = steps > STEPS // 4
    slope = np.polyfit(steps[later], resident[later], 1)[0]
    assert slope < 2000, f"{slope:.0f} bytes a step"
    assert files[later].max() == files[later].min()
    assert kept.max() <= 3  # the two newest and the best
    record("L", STEPS)
