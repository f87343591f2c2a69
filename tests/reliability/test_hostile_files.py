"""F: files made to harm are refused in one line; nothing of what they carry ever runs."""

import io
import json
import os
import pickle
import struct
import zipfile

import pytest

from minigpt import checkpoint, run_directory, saved_runs, storage
from minigpt.errors import UserError
from minigpt.trainer import Trainer


class Canary:
    """A pickle that leaves a file where it is read."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def pickled(canary):
    return pickle.dumps({"model": Canary(canary)})


def zipped(canary):
    """What torch.save makes: a pickle in a zip, here with much behind it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickled(canary))
        archive.writestr("archive/data/0", bytes(10**7))
    return content.getvalue()


def tensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def one(**more):
    return {"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} | more}


def weights_files(canary):
    return {
        "a pickle": pickled(canary),
        "torch's zip": zipped(canary),
        "nothing": b"",
        "seven bytes": b"1234567",
        "a header without end": tensors(b"{", length=2**62),
        "a negative length": b"\xff" * 8 + b"{}",
        "a header of blanks": tensors(b" " * 10**5),
        "no JSON": tensors(b"[1, 2"),
        "deep JSON": tensors(b'{"a":' * 9999),
        "offsets beyond the end": tensors(one(data_offsets=[0, 2**40]), b"1234"),
        "offsets backwards": tensors(one(data_offsets=[4, 0]), b"1234"),
        "a shape too large": tensors(one(shape=[2**62, 2**62]), b"1234"),
        "a negative shape": tensors(one(shape=[-1]), b"1234"),
        "an unknown type": tensors(one(dtype="PY"), b"1234"),
        "overlapping": tensors(one() | {"y": one()["x"]}, b"1234"),
        "a hole": tensors(one(data_offsets=[4, 8]), b"12345678"),
        "a name with a path": tensors({"../../x": one()["x"]}, b"1234"),
        "no tensors": tensors({}),
        "another model's": tensors(one(), b"1234"),
    }


TEXTS = {
    "a number": b"7",
    "a list": b"[]",
    "null": b"null",
    "deep": b"[" * 99999,
    "deep mappings": b'{"a":' * 99999,
    "not UTF-8": b"\xff\xfe{}",
    "a huge number": b'{"step": ' + b"9" * 9999 + b"}",
    "a text for a number": b'{"step": "x"}',
    "not a number": b'{"step": NaN}',
    "cut": b'{"step": 1',
}
MANIFESTS = {
    "a path upwards": {"../../../x": {"bytes": 1, "sha256": "0"}},
    "an absolute path": {"/etc/passwd": {"bytes": 1, "sha256": "0"}},
    "no digest": {"model.safetensors": {}},
    "a number for a file": {"model.safetensors": 1},
    "a list of files": ["model.safetensors"],
    "a device": {"/dev/zero": {"bytes": 1, "sha256": "0"}},
    "the folder itself": {".": {"bytes": 1, "sha256": "0"}},
    "a NUL": {"a\0b": {"bytes": 1, "sha256": "0"}},
}
CONFIGS = {
    "a tag": b"seed: !!python/object/apply:os.system ['touch canary']",
    "an alias bomb": b"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n",
    "deep": b"[" * 2000,
    "deep mappings": b"{a: " * 2000,
    "a huge model": b"model:\n  num_layers: 512\n  embed_dim: 65536\n  num_heads: 99999999\n",
    "not UTF-8": b"\xff\xfe",
    "binary": bytes(range(256)),
    "a NUL": b"seed: \0",
}
TOKENIZERS = {
    "no tokens": {"kind": "byte", "pattern": ".", "tokens": []},
    "a number": 7,
    "another kind": {"kind": "evil", "pattern": ".", "tokens": ["a"]},
    "twice the same": {"kind": "char", "pattern": ".", "tokens": ["a", "a"]},
    "no bytes": {"kind": "bpe", "pattern": ".", "tokens": ["ab"]},
    "bytes out of range": {"kind": "char", "pattern": ".", "tokens": [[300]]},
    "a bad pattern": {"kind": "char", "pattern": "((", "tokens": ["a"]},
    "half a character": {"kind": "char", "pattern": ".", "tokens": ["\ud800"]},
    "a mapping": {"kind": "char", "pattern": ".", "tokens": {"a": 1}},
}
PIPES = ("manifest.json", "state.json", "model.safetensors", "config.yaml", "tokenizer.json")


@pytest.fixture
def run_dir(golden, tmp_path):
    golden.stopped_at(4, tmp_path / "run")
    return tmp_path / "run"


def folder_of(run_dir):
    return saved_runs.checkpoints(run_dir)[-1]


def put(run_dir, name, data):
    """Puts a file into the checkpoint, with a manifest that says that it belongs there."""
    folder = folder_of(run_dir)
    (folder / name).write_bytes(data)
    (folder / "manifest.json").unlink()
    storage.write_json(folder / "manifest.json", checkpoint.manifest(folder))


def refused(call, canary):
    with pytest.raises(UserError) as caught:
        call()
    assert "\n" not in str(caught.value), caught.value
    assert not canary.exists()


@pytest.mark.parametrize("case", weights_files(""))
@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors"])
def test_weights(golden, run_dir, tmp_path, record, name, case):
    canary = tmp_path / "canary"
    put(run_dir, name, weights_files(canary)[case])
    harmless = name.startswith("optimizer") and case in (
        "no tensors",
        "another model's",
        "a name with a path",
    )
    resume = Trainer if not harmless else None
    if name.startswith("model"):
        refused(lambda: checkpoint.load_run(run_dir, "last"), canary)
    if resume:
        refused(lambda: resume(golden.config(), golden.corpus, run_dir, folder_of(run_dir)), canary)
    record("F", 1)


@pytest.mark.parametrize("case", TEXTS)
def test_state(run_dir, tmp_path, record, case):
    put(run_dir, "state.json", TEXTS[case])
    refused(lambda: checkpoint.load_run(run_dir, "last"), tmp_path / "canary")
    record("F", 1)


@pytest.mark.parametrize("case", TEXTS)
def test_manifest_that_is_none(golden, run_dir, tmp_path, record, case):
    (folder_of(run_dir) / "manifest.json").write_bytes(TEXTS[case])
    resume = run_directory.resume
    refused(lambda: checkpoint.load_run(run_dir, "last"), tmp_path / "canary")
    refused(lambda: resume(run_dir, golden.config(), golden.corpus), tmp_path / "canary")
    record("F", 1)


@pytest.mark.parametrize("case", MANIFESTS)
def test_manifest_with_a_right_digest(run_dir, tmp_path, record, case):
    path = folder_of(run_dir) / "manifest.json"
    content = json.loads(path.read_text()) | {"files": MANIFESTS[case]}
    content.pop("digest")
    storage.write_json(path, content | {"digest": saved_runs.digest(content)})
    refused(lambda: checkpoint.load_run(run_dir, "last"), tmp_path / "canary")
    record("F", 1)


@pytest.mark.parametrize("case", CONFIGS)
def test_config(run_dir, tmp_path, record, case, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (run_dir / "config.yaml").write_bytes(CONFIGS[case])
    refused(lambda: checkpoint.load_run(run_dir, "last"), tmp_path / "canary")
    record("F", 1)


@pytest.mark.parametrize("case", TOKENIZERS)
def test_tokenizer(run_dir, tmp_path, record, case):
    (run_dir / "tokenizer.json").write_text(json.dumps(TOKENIZERS[case]))
    refused(lambda: checkpoint.load_run(run_dir, "last"), tmp_path / "canary")
    record("F", 1)


@pytest.mark.parametrize("name", PIPES)
def test_a_pipe_in_place_of_a_file_does_not_hang(run_dir, tmp_path, record, name):
    path = (
        run_dir / name if name in ("config.yaml", "tokenizer.json") else folder_of(run_dir) / name
    )
    path.unlink()
    os.mkfifo(path)
    refused(lambda: checkpoint.load_run(run_dir, "last"), tmp_path / "canary")
    record("F", 1)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin", ".ckpt", ".pkl"])
def test_pickles_are_not_even_opened(tmp_path, record, suffix):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(pickled(tmp_path / "canary"))
    refused(lambda: checkpoint.load_run(path), tmp_path / "canary")
    record("F", 1)
