"""Where the arithmetic runs, and in which number format.

names from the config -> torch device, dtype, compiled model
"""

import contextlib
import ctypes
import platform
import shutil
from collections.abc import Callable

import torch
from torch import nn

from minigpt.errors import CONFIG, UserError

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def choose_device(name: str) -> torch.device:
    """`auto` takes a GPU where there is one; raises UserError where the named one is missing."""
    available = ["cpu"]
    available += [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    available += ["mps"] if torch.backends.mps.is_available() else []
    if name == "auto":
        return torch.device("cpu" if len(available) == 1 else available[1])
    wanted = "cuda:0" if name == "cuda" else name
    if wanted not in available:
        there = ", ".join(available)
        raise UserError(f"device: {name!r} is not on this machine; there is {there}", CONFIG)
    return torch.device(wanted)


def choose_precision(name: str, device: torch.device) -> tuple[torch.dtype, str | None]:
    """The number format of the products, and a warning where it is not the one asked for."""
    bfloat16_units = device.type == "cuda" and torch.cuda.is_bf16_supported()
    if name == "auto":
        return (torch.bfloat16 if bfloat16_units else torch.float32), None
    if name == "bfloat16" and device.type == "cuda" and not bfloat16_units:
        return torch.float32, "precision: this GPU has no bfloat16; float32 is used"
    if name == "float16" and device.type == "cpu":
        return torch.float32, "precision: float16 is not trained on a CPU; float32 is used"
    return PRECISIONS[name], None


def autocast(device: torch.device, precision: torch.dtype) -> contextlib.AbstractContextManager:
    """Computes products in `precision` and keeps the weights in float32."""
    if precision == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, precision)


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # the numbers of these settings in malloc.h


def keep_memory() -> None:
    """Lets the C library keep large freed blocks for the next step (GNU's only; else nothing).

    By default it hands them back, and the system clears each page when it is asked for again:
    up to a fifth of a step. Source: mallopt(3).
    """
    if platform.libc_ver()[0] == "glibc":
        c_library = ctypes.CDLL(None)
        for threshold in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
            c_library.mallopt(threshold, 2**31 - 1)


def compiled(model: nn.Module, mode: str, device: torch.device) -> tuple[Callable, str | None]:
    """The model as a faster function where that pays, and a warning where it can't be had.

    `auto` compiles on a GPU only: on a CPU the compiler itself takes longer than a small model
    trains.
    """
    if mode == "off" or (mode == "auto" and device.type != "cuda"):
        return model, None
    if not any(shutil.which(compiler) for compiler in ("cc", "gcc", "clang", "cl")):
        return model, "compile: no C compiler found; the model runs uncompiled"
    return torch.compile(model), None
