"""O: the tests have teeth. Each of these faults, put into a copy of minigpt, turns a test red."""

import os
import shutil
import subprocess
import sys

import pytest
from conftest import REPOSITORY

FSYNC = "    file.flush()\n    os.fsync(file.fileno())\n"
RESUME = "test_resume.py::test_resumed_is_uninterrupted"
CUT, DAMAGE = "test_power_cut.py", "test_corruption.py::test_every_damage_is_seen"
NUMBERS, TEXTS = "test_non_finite.py", "test_dirty_texts.py"
FAULTS = {
    "a file is not flushed": ("storage", FSYNC, "    file.flush()\n", CUT),
    "a folder is not flushed": ("storage", "        os.fsync(descriptor)\n", "        pass\n", CUT),
    "a new folder's name is not flushed": (
        "storage",
        "        path.mkdir(exist_ok=True)\n        sync_folder(path.parent)\n",
        "        path.mkdir(exist_ok=True)\n",
        CUT,
    ),
    "the log is not flushed": ("trainer", "        self.log.sync()\n", "", CUT),
    "older checkpoints go first": (
        "checkpoint",
        "    with storage.new_folder(folder) as temporary:",
        "    prune(run_dir, 0)\n    [storage.remove_folder(f) for f in checkpoints(run_dir)[-1:]]\n"
        "    with storage.new_folder(folder) as temporary:",
        "test_failing_writes.py",
    ),
    "half-made files stay": (
        "storage",
        "            shutil.rmtree(temporary, ignore_errors=True)",
        "            pass",
        "test_failing_writes.py",
    ),
    "digests are not compared": (
        "saved_runs",
        'found != expected.get("sha256")',
        "False",
        DAMAGE,
    ),
    "the manifest is believed": (
        "saved_runs",
        'intact = text == storage.json_text(content) and content.pop("digest") == digest(content)',
        'intact = bool(content.pop("digest"))',
        DAMAGE,
    ),
    "another tokenizer is taken": (
        "checkpoint",
        "    require_own(folder, config)\n",
        "",
        "test_corruption.py::test_a_changed_tokenizer_or_model_setting_is_seen",
    ),
    "the newest is taken, good or not": (
        "saved_runs",
        "            verify(folder)\n            return folder, skipped",
        "            return folder, skipped",
        "test_corruption.py::test_it_goes_on_from_the_last_good_of_three",
    ),
    "optimisers are forgotten": (
        "checkpoint",
        "training = optimizer_tensors(model, optimizers)",
        "training: dict[str, Tensor] = {}",
        RESUME,
    ),
    "a step too far": (
        "trainer",
        "        self.state = checkpoint.read_state(folder)",
        "        self.state = checkpoint.read_state(folder)\n        self.state.step += 1",
        RESUME,
    ),
    "batches from the global random numbers": (
        "data",
        "    return (bits[::4] >> np.uint64(11)) * 2.0**-53",
        "    return np.random.random(number)",
        RESUME,
    ),
    "dropout from the global random numbers": (
        "trainer",
        "        if self.config.model.dropout:\n            entropy",
        "        if False:\n            entropy",
        RESUME,
    ),
    "an evaluation that was stopped is forgotten": (
        "trainer",
        "                self.make_up_for_a_stop()\n",
        "",
        RESUME,
    ),
    "a stop does not save": (
        "trainer",
        "            if self.saved_step != self.state.step:\n                self.save()\n",
        "",
        RESUME,
    ),
    "the log is not cut back": (
        "training_log",
        '[r for r in read_metrics(run_dir) if r["step"] <= first_step]',
        "read_metrics(run_dir)",
        "test_kills.py",
    ),
    "numbers are not looked at": ("trainer", "if np.isfinite(value):", "if True:", NUMBERS),
    "bad weights are saved": (
        "checkpoint",
        "if not torch.isfinite(tensor).all():",
        "if False:",
        NUMBERS,
    ),
    "a wrong exit code": (
        "errors",
        "INTERRUPTED = 130",
        "INTERRUPTED = 1",
        "test_signals.py",
    ),
    "no lock": (
        "storage",
        "            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "            pass",
        "test_races.py::test_of_two_trainers_one_wins",
    ),
    "a time in the checkpoint": (
        "checkpoint",
        '        "threads": torch.get_num_threads(),',
        '        "threads": __import__("time").time_ns() % 1000,',
        "test_resume.py::test_who_looks_on_changes_nothing",
    ),
    "a traceback for lack of memory": (
        "errors",
        "        if not is_lack_of_memory(error):",
        "        if True:",
        "test_limits.py",
    ),
    "NUL is read": (
        "text_files",
        "    if place >= 0:\n        message",
        "    if False:\n        message",
        TEXTS,
    ),
    "nothing is escaped in the page": (
        "explorer/bundle",
        'return text.replace("<", "\\\\u003c")',
        "return text",
        "../test_explorer_payloads.py::test_it_is_data_in_the_file_and_nothing_else",
    ),
}
QUICK = ("digests are not compared", "numbers are not looked at", "a time in the checkpoint")


def mutated(folder, module, before, after):
    package = folder / "minigpt"
    shutil.copytree(REPOSITORY / "minigpt", package, ignore=shutil.ignore_patterns("__pycache__"))
    if before is not None:
        path = package / f"{module}.py"
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{module}.py no longer says: {before}"
        path.write_text(text.replace(before, after), encoding="utf-8")
    return package


def run_tests(package, *tests):
    places = [str(REPOSITORY / "tests" / "reliability" / test) for test in tests]
    words = ["-m", "pytest", "-q", "-x", "-o", "addopts=-m 'not nightly'", "-p", "no:cacheprovider"]
    environment = os.environ | {
        "PYTHONPATH": str(package.parent),
        "PYTHONSAFEPATH": "1",
        "MINIGPT_UNDER_TEST": str(package),
    }
    environment.pop("MINIGPT_COUNTS", None)
    return subprocess.run(
        [sys.executable, *words, *places],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def turns_red(tmp_path, fault):
    module, before, after, test = FAULTS[fault]
    done = run_tests(mutated(tmp_path, module, before, after), test)
    assert done.returncode == 1, f"{fault}: {done.stdout[-2000:]} {done.stderr[-500:]}"


@pytest.mark.parametrize("fault", QUICK)
def test_a_fault_turns_a_test_red(tmp_path, record, fault):
    turns_red(tmp_path, fault)
    record("O", 1)


@pytest.mark.nightly
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in QUICK])
def test_every_other_fault_turns_a_test_red(tmp_path, record, fault):
    turns_red(tmp_path, fault)
    record("O", 1)


@pytest.mark.nightly
def test_without_a_fault_the_copy_passes(tmp_path):
    tests = sorted({test for *_, test in FAULTS.values()})
    done = run_tests(mutated(tmp_path, "", None, None), *tests)
    assert done.returncode == 0, done.stdout[-2000:]
