"""Several processes where work is long enough for that to pay; above all, to tokenise a text.

chunks of text -> (chunk, ids) in the same order
"""

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from minigpt.errors import EXIT_CODES, RESOURCES, UserError
from minigpt.tokenizer import Tokenizer

Encoder = Callable[[Iterable[str]], Iterator[tuple[str, np.ndarray]]]
LONG = 2 * 10**7  # characters; below, starting processes takes longer than they save
MOST = 8  # processes; each takes about 50 MiB, and from here on reading is what takes long
of_this_process: Tokenizer | None = None  # set in the processes of a pool only


@contextlib.contextmanager
def encoder(tokenizer: Tokenizer, num_characters: int) -> Iterator[Encoder]:
    """A function from chunks to pairs of a chunk and its ids; it ends with the context."""
    by_table = tokenizer.kind in ("char", "byte")  # as fast as sending the text elsewhere
    if num_characters < LONG or by_table or num_processes() == 1:
        yield partial(encode_here, tokenizer)
        return
    with pool_of_processes(set_up, tokenizer.to_json()) as pool:
        yield partial(encode_there, pool)


def encode_here(tokenizer: Tokenizer, chunks: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
    for chunk in chunks:
        yield chunk, tokenizer.encode_chunk(chunk)


def encode_there(
    pool: ProcessPoolExecutor, chunks: Iterable[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Keeps a few chunks ahead at work, never the whole text."""
    ahead = 4 * num_processes()
    waiting: deque[tuple[str, Future[np.ndarray]]] = deque()
    for chunk in chunks:
        waiting.append((chunk, pool.submit(encode, chunk)))
        if len(waiting) > ahead:
            first, ids = waiting.popleft()
            yield first, ids.result()
    for chunk, ids in waiting:
        yield chunk, ids.result()


def set_up(tokenizer: Any) -> None:
    global of_this_process
    of_this_process = Tokenizer.from_json(tokenizer)


def encode(chunk: str) -> np.ndarray:
    assert of_this_process is not None
    return of_this_process.encode_chunk(chunk)


# ------------------------------------------------------------------------------ processes


class Pool(ProcessPoolExecutor):
    """Starts its processes deaf to Ctrl-C and `kill`, which this process answers for all."""

    def submit(self, *work: Any, **more: Any) -> Future:
        heard = signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_CODES)  # a new process inherits this
        try:
            return super().submit(*work, **more)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, heard)


def num_processes() -> int:
    """As many as there are cores that this process may use, and not more than pay."""
    allowed = getattr(os, "sched_getaffinity", None)  # not on every system
    return min(len(allowed(0)) if allowed else os.cpu_count() or 1, MOST)


def nothing() -> None:
    pass


@contextlib.contextmanager
def pool_of_processes(set_up: Callable[..., None] = nothing, *arguments: Any) -> Iterator[Pool]:
    """Processes that each call `set_up(*arguments)` first, and end with this one however it ends.

    Raises UserError where one of them is killed.
    """
    start = get_context("spawn")  # a fork would copy locks of threads that it does not copy
    with Pool(num_processes(), start, begin, (set_up, *arguments)) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            message = "memory: a process was killed, perhaps for lack of it; close other programs"
            raise UserError(f"{message} and try again", RESOURCES) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def begin(set_up: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    set_up(*arguments)


def end_with_parent() -> None:
    """Without this, the processes of a parent that was killed would wait for ever."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
