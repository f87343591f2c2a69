"""Where it runs: what is asked for and there is taken, what is not there is told."""

import platform
import subprocess
import sys

import pytest
import torch

from minigpt.device import autocast, choose_device, choose_precision, compiled
from minigpt.errors import CONFIG, UserError

CPU = torch.device("cpu")
MISSING = [f"cuda:{torch.cuda.device_count()}", "cuda:99"]
MISSING += [] if torch.backends.mps.is_available() else ["mps"]


@pytest.mark.parametrize("name", MISSING)
def test_a_device_that_is_not_there_is_named_beside_those_that_are(name):
    with pytest.raises(UserError, match=f"{name}.* is not on this machine; there is cpu") as caught:
        choose_device(name)
    assert caught.value.exit_code == CONFIG


def test_a_device_is_the_one_that_was_asked_for():
    assert choose_device("cpu") == CPU
    assert choose_device("auto").type in ("cpu", "cuda", "mps")


def test_a_number_format_that_is_not_there_is_replaced_and_told():
    assert choose_precision("auto", CPU) == (torch.float32, None)
    precision, warning = choose_precision("float16", CPU)
    assert precision == torch.float32
    assert "float16 is not trained on a CPU; float32 is used" in warning


@pytest.mark.skipif(torch.cuda.is_available(), reason="this GPU may have bfloat16")
def test_a_gpu_without_bfloat16_computes_in_float32():
    precision, warning = choose_precision("bfloat16", torch.device("cuda"))
    assert precision == torch.float32
    assert "no bfloat16; float32 is used" in warning


def test_products_are_computed_in_the_format_and_weights_kept():
    layer = torch.nn.Linear(3, 5)
    with autocast(CPU, torch.bfloat16):
        assert layer(torch.ones(3)).dtype == torch.bfloat16
    with autocast(CPU, torch.float32):
        assert layer(torch.ones(3)).dtype == torch.float32
    assert layer.weight.dtype == torch.float32


@pytest.mark.parametrize("mode", ["auto", "on", "off"])
def test_without_a_c_compiler_the_model_runs_uncompiled(monkeypatch, mode):
    monkeypatch.setenv("PATH", "/nowhere")
    layer = torch.nn.Linear(3, 5)
    forward, warning = compiled(layer, mode, torch.device("cuda"))
    assert forward is layer
    assert (warning is None) == (mode == "off")
    assert compiled(layer, "auto", CPU) == (layer, None)  # there it would not pay


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of GNU's C library")
def test_freed_memory_is_kept_for_the_next_step():
    program = """
import resource, torch
from minigpt.device import keep_memory

def page_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(2_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

usual = page_faults()
keep_memory()
page_faults()
print(usual, page_faults())
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    usual, kept = map(int, result.stdout.split())
    assert kept < usual / 10
