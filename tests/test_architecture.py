"""The house stands as drawn: who may import whom, what nobody may do, how long a function is."""

import ast
import statistics

import pytest
from conftest import REPOSITORY

FLOORS = [
    {"errors", "storage", "cache", "rotary", "foreign_names", "console", "options", "extras"}
    | {"dropout"},
    {"config", "config_file", "command_line", "chunks", "download", "tokenizer", "vocabulary"}
    | {"attention", "device", "interrupts", "text_files", "text_formats", "parallel", "saved_runs"}
    | {"distributed"},
    {"starting_point", "data", "text", "model", "loss", "optim", "weights", "dry_run", "sampling"},
    {"decoding", "schema", "choosing"},
    {"checkpoint", "averaging", "run_directory", "generation", "training_log", "loss_plot"},
    {"trainer", "train_arguments", "generate_arguments", "loggers"},
]
WINGS = {"stories", "heads", "explorer", "interop"}
ROOF = {"__init__", "library"}  # beside the scripts, the only ones that know everybody
WITHOUT_TORCH = {"errors", "storage", "config", "config_file", "command_line", "tokenizer"}
WITHOUT_TORCH |= {"data", "text", "text_files", "vocabulary", "dry_run", "train_arguments"}
WITHOUT_TORCH |= {"saved_runs", "generate_arguments", "library", "loggers", "__init__"}
WITHOUT_TORCH |= {"schema", "distributed", "starting_point"}
BANNED_CALLS = {"eval", "exec", "torch.load", "torch.save", "yaml.load", "np.savez"}
PACKAGE = sorted((REPOSITORY / "minigpt").rglob("*.py"))
SCRIPTS = sorted((REPOSITORY / "scripts").glob("*.py"))
LONG_SCRIPTS = {"walkthrough.py", "benchmark.py"}  # are the thing itself, not a way to call it


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path):
    """`model`, or the wing for a file in one."""
    return path.relative_to(REPOSITORY / "minigpt").with_suffix("").parts[0]


def imports(path, at_import_only=False):
    """The modules a file imports, as dotted names."""
    found = set()
    nodes = tree(path).body if at_import_only else ast.walk(tree(path))
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def own(path):
    """Which of our modules and wings a file imports."""
    parts = [name.split(".") for name in imports(path) if name.startswith("minigpt.")]
    return {part[1] for part in parts} - {name_of(path)}


def floor_of(name):
    return next((number for number, names in enumerate(FLOORS) if name in names), None)


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: path.stem)
def test_imports_point_downwards(path):
    name = name_of(path)
    if path.parent.name == "minigpt" and name in ROOF:
        return
    if name in WINGS:
        assert own(path) & WINGS <= {"stories"} or name in ("explorer", "interop")
        return
    assert floor_of(name) is not None, f"{name} has no floor: give it one in this test"
    assert not own(path) & WINGS
    assert not own(path) & ROOF
    for other in own(path):
        assert floor_of(other) is not None, other
        assert floor_of(other) <= floor_of(name), f"{name} must not import {other}"


def test_nothing_is_imported_in_a_circle():
    graph = {}
    for path in PACKAGE:
        graph.setdefault(name_of(path), set()).update(own(path))
    done, going = set(), []

    def visit(name):
        assert name not in going, " -> ".join([*going, name])
        if name not in done:
            going.append(name)
            for other in graph.get(name, ()):
                visit(other)
            done.add(going.pop())

    for name in graph:
        visit(name)


@pytest.mark.parametrize("name", sorted(WITHOUT_TORCH))
def test_what_answers_at_once_does_without_pytorch(name):
    seen, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        path = REPOSITORY / "minigpt" / f"{current}.py"
        if current in seen or not path.exists():
            continue
        seen.add(current)
        found = imports(path, at_import_only=True)
        assert "torch" not in found, f"{name} imports torch through {current}"
        waiting += [part.split(".")[1] for part in found if part.startswith("minigpt.")]


@pytest.mark.parametrize("path", PACKAGE + SCRIPTS, ids=lambda path: path.stem)
def test_nobody_unpickles_evaluates_or_writes_files_on_the_side(path):
    assert not {"pickle", "shelve", "marshal", "dill"} & imports(path)
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in BANNED_CALLS, f"{called} in line {node.lineno}"
            if path.name != "storage.py":
                assert not called.endswith((".write_text", ".write_bytes", ".mkdir")) or (
                    called.startswith("storage.")
                ), f"{called} in line {node.lineno}"
                if called == "open":
                    mode = ast.unparse(node.args[1]) if len(node.args) > 1 else "'r'"
                    assert not set("wax+") & set(mode), f"open to write in line {node.lineno}"


def test_no_test_pickles_but_where_others_do():
    tests = REPOSITORY / "tests"
    control = tests / "reliability" / "control.py"  # what minigpt is held against
    others = tests / "test_interop.py"  # another project's file, as its users have it
    for path in {*tests.rglob("*.py")} - {control, others}:
        for node in ast.walk(tree(path)):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert called not in BANNED_CALLS - {"eval", "exec"}, f"{called} in {path}"


@pytest.mark.parametrize("path", PACKAGE + SCRIPTS, ids=lambda path: path.stem)
def test_no_text_is_read_or_written_in_the_systems_own_encoding(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            called, words = ast.unparse(node.func), ast.unparse(node)
            if called.endswith(".read_text") or (
                called in ("open", "io.open") and "b'" not in words
            ):
                assert "encoding=" in words, f"{words} in line {node.lineno}"


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: path.stem)
def test_modules_introduce_themselves_and_do_nothing_when_imported(path):
    module = tree(path)
    assert path.stem != "utils"
    if module.body:
        assert ast.get_docstring(module), "a module docstring is missing"
    for node in module.body:
        allowed = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.Assign
        allowed |= ast.AnnAssign | ast.AugAssign | ast.Expr | ast.If
        assert isinstance(node, allowed)
        if isinstance(node, ast.If):
            assert ast.unparse(node.test) == "TYPE_CHECKING"


def test_functions_are_short():
    lengths = [
        node.end_lineno - node.lineno + 1
        for path in PACKAGE
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
    ]
    assert statistics.median(lengths) <= 10
    assert statistics.quantiles(lengths, n=20)[-1] <= 30
    assert max(lengths) <= 45


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_are_short(path):
    if path.name not in LONG_SCRIPTS:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 85


def test_the_repository_speaks_of_the_product_alone():
    for path in [*PACKAGE, *SCRIPTS, REPOSITORY / "README.md", *REPOSITORY.glob("configs/*")]:
        text = path.read_text(encoding="utf-8").lower()
        for word in ("/work/", "pypi.org", "helper-", "issue #"):
            assert word not in text, f"{word} in {path}"
