"""One training by several processes that `torchrun` started, on one machine or on many.

Each process takes its rows of every batch, and then their gradients become one. The model is in
every process (DDP) or shared out among them (FSDP2). Where there is one process, everything here
gives back what it was given, and no process group is made.
Sources: Li et al. 2020, "PyTorch Distributed"; Zhao et al. 2023, "PyTorch FSDP".

what each process has -> gradients, sums and decisions that all of them share
"""

import contextlib
import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from minigpt import storage
from minigpt.errors import (
    CONFIG,
    EXIT_CODES,
    RESOURCES,
    UserError,
    code_of,
    exit_with,
    is_lack_of_memory,
    run_command,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from minigpt.config import Config

T = TypeVar("T")
PATIENCE = timedelta(minutes=30)  # with a process that is alive and says nothing
GRACE = 10.0  # seconds in which a process leaves by itself after another is lost

# ------------------------------------------------------------------------------ who am I


def told_by_torchrun(name: str, otherwise: int) -> int:
    return int(os.environ[name]) if "TORCHELASTIC_RUN_ID" in os.environ else otherwise


def world_size() -> int:
    """How many processes train together."""
    return told_by_torchrun("WORLD_SIZE", 1)


def rank() -> int:
    """Which of them this is: 0, 1, …"""
    return told_by_torchrun("RANK", 0)


def local_rank() -> int:
    """Which of those on its machine."""
    return told_by_torchrun("LOCAL_RANK", 0)


def is_first() -> bool:
    """Only the first process speaks and writes."""
    return rank() == 0


def own_device(name: str) -> str:
    """The device of this process, as a name: each process of a machine has its own GPU."""
    if world_size() == 1 or name == "cpu":
        return name
    import torch

    if name == "auto" and not torch.cuda.is_available():
        return "cpu"
    return f"cuda:{local_rank()}"


# ------------------------------------------------------------------------------ together


@contextlib.contextmanager
def joined(config: "Config") -> Iterator[None]:
    """A context in which the processes know of each other, and which they leave together.

    Raises UserError where they can't share the work, and where one of them is lost.
    """
    if world_size() == 1:
        yield
        return
    require_shares(config)
    import torch
    import torch.distributed as dist

    from minigpt.device import choose_device

    device = choose_device(own_device(config.device))
    if device.type == "cuda":
        torch.cuda.set_device(device)
    with losses_explained():
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, timeout=PATIENCE)
        require_same("the settings", config.model_dump_json())
        with neighbours_watched():
            yield
            barrier()
    ignore_signals()
    dist.destroy_process_group()


def require_shares(config: "Config") -> None:
    """Raises UserError where the settings do not suit so many processes."""
    number, rows = world_size(), config.train.batch_size
    if rows % number:
        allowed = f"a multiple of {number} is allowed, such as {number * max(rows // number, 1)}"
        message = f"train.batch_size: {rows} rows can't be shared among {number} processes"
        raise UserError(f"{message}; {allowed}", CONFIG)
    if config.device not in ("auto", "cpu", "cuda"):
        message = f"device: {config.device} is one device, and there are {number} processes"
        raise UserError(f"{message}; write cpu or cuda, and each takes its own", CONFIG)


def require_same(what: str, text: str) -> None:
    """Raises UserError in all processes where `text` is not the same in all."""
    number = int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)  # exact in float64
    if highest(number) != -highest(-number):
        advice = "give all machines the same command, files and version of minigpt"
        raise UserError(f"processes: {what} are not the same in all of them; {advice}", CONFIG)


@contextlib.contextmanager
def losses_explained() -> Iterator[None]:
    """PyTorch tells of a lost process in words that depend on what was going on."""
    try:
        yield
    except RuntimeError as error:
        words = str(error).lower()
        signs = ("gloo", "nccl", "connection", "socket", "timed out")
        if is_lack_of_memory(error) or not any(sign in words for sign in signs):
            raise
        raise UserError(one_is_lost(), RESOURCES) from error


def one_is_lost() -> str:
    message = f"processes: one of the {world_size()} ended early, and the others need it"
    return f"{message}; start them again; once a checkpoint was saved, with --resume"


@contextlib.contextmanager
def neighbours_watched() -> Iterator[None]:
    """A context that ends this process soon after torchrun or another of them was killed here.

    Mostly PyTorch tells of that. But gloo can lose the news when it is sending at that very
    moment, and then waits as long as its timeout in code that no signal reaches.
    """
    if os.name != "posix":  # elsewhere nothing asks for a process without touching it
        yield
        return
    done = threading.Event()
    watch = partial(leave_when_one_is_gone, local_processes(), done)
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def leave_when_one_is_gone(processes: list[int], done: threading.Event) -> None:
    torchrun = os.getppid()
    while os.getppid() == torchrun and all(map(is_running, processes)):
        if done.wait(1):
            return
    if done.wait(GRACE):
        return
    try:
        if claims_to_tell():
            exit_with(one_is_lost(), RESOURCES)
    finally:
        os._exit(RESOURCES)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, PermissionError):  # nobody's number, or by now another's
        return False
    return True


# ------------------------------------------------------------------------------ one voice


def run_command_together(main: Callable[[list[str]], int | None]) -> NoReturn:
    """`run_command` for perhaps one of several: what fails is told once on each machine."""
    if world_size() == 1:
        run_command(main)
    if not is_first():
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    try:
        run_command(partial(told_once, main))
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        # Python's own way out aborts now and then: threads of PyTorch's are still at work.
        os._exit(int(end.code or 0))


def told_once(main: Callable[[list[str]], int | None], arguments: list[str]) -> int | None:
    try:
        return main(arguments)
    except (Exception, KeyboardInterrupt) as error:
        ignore_signals()
        if claims_to_tell():
            raise
        return exit_code_of(error)


def claims_to_tell() -> bool:
    """Whether this is the first process of its machine that has something to tell."""
    return storage.claimed(Path(os.environ["TORCHELASTIC_ERROR_FILE"]).parent.with_name("told"))


def ignore_signals() -> None:
    """To be called when all that is left is to leave: torchrun then ends those that are slower."""
    for number in EXIT_CODES:
        signal.signal(number, signal.SIG_IGN)


def exit_code_of(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return code_of(error)
    return error.exit_code if isinstance(error, UserError) else 1


# ------------------------------------------------------------------------------ numbers


def total(number: float) -> float:
    """The sum of what the processes have."""
    return number if world_size() == 1 else reduced(number, "SUM")


def highest(number: float) -> float:
    """The highest of what the processes have."""
    return number if world_size() == 1 else reduced(number, "MAX")


def reduced(number: float, how: str) -> float:
    import torch
    import torch.distributed as dist

    box = torch.tensor([number], dtype=torch.float64)
    dist.all_reduce(box, getattr(dist.ReduceOp, how))
    return box.item()


def local_processes() -> list[int]:
    """The process ids of those on this machine."""
    import torch
    import torch.distributed as dist

    ids = torch.zeros(world_size(), dtype=torch.int64)
    ids[rank()] = os.getpid()
    dist.all_reduce(ids)
    first = rank() - local_rank()
    return ids[first : first + told_by_torchrun("LOCAL_WORLD_SIZE", 1)].tolist()


def barrier() -> None:
    """Waits until all processes are here."""
    total(0)


def from_first(make: Callable[[], T]) -> T:
    """What `make` gives in the first process, the only one that calls it: numbers and texts."""
    if world_size() == 1:
        return make()
    import torch
    import torch.distributed as dist

    told = json.dumps(make()).encode() if is_first() else b""
    length = torch.tensor([len(told)])
    dist.broadcast(length, 0)
    content = torch.zeros(int(length), dtype=torch.uint8)
    if is_first():
        content = torch.frombuffer(bytearray(told), dtype=torch.uint8)
    dist.broadcast(content, 0)
    return json.loads(content.numpy().tobytes())


def in_turn(make: Callable[[], T]) -> T:
    """Calls `make` in the first process of each machine, then in the others, who find its files."""
    if local_rank() == 0:
        made = make()
        barrier()
        return made
    barrier()
    return make()


# ------------------------------------------------------------------------------ tensors


def shared_out(model: "nn.Module", blocks: "nn.ModuleList", device: str) -> None:
    """FSDP2: each process keeps its rows of every weight, and has one block whole at a time."""
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    mesh = dist.device_mesh.init_device_mesh(device, (world_size(),))
    for part in (*blocks, model):
        fully_shard(part, mesh=mesh, reshard_after_forward=True)


def with_common_gradients(model: "nn.Module") -> "nn.Module":
    """DDP: after the way back through the result, gradients are the mean over the processes."""
    if world_size() == 1 or any(map(is_shared_out, model.parameters())):
        return model  # FSDP does the same by itself
    from torch.nn.parallel import DistributedDataParallel

    copies = DistributedDataParallel(model, gradient_as_bucket_view=True)
    copies.broadcast_buffers = False  # they hold the positions' angles, which never change
    return copies


def gradients_at(forward: Callable, last: bool) -> contextlib.AbstractContextManager:
    """A context for one micro-step: DDP's gradients meet in the last of a step only."""
    stay = getattr(forward, "no_sync", None)
    return contextlib.nullcontext() if last or stay is None else stay()


def is_shared_out(tensor: "Tensor") -> bool:
    return hasattr(tensor, "full_tensor")


def whole(tensor: "Tensor") -> "Tensor":
    """A shared-out tensor put together, which takes all processes; others as they are."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def like(tensor: "Tensor", example: "Tensor") -> "Tensor":
    """The reverse of `whole`: what this process keeps of `tensor`, if it keeps so of `example`."""
    if not is_shared_out(example):
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(example, DTensor)
    mesh, placements = example.device_mesh, example.placements
    return distribute_tensor(tensor, mesh, placements, src_data_rank=None)
