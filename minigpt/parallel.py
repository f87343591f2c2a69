"""Tokenises chunk after chunk, in several processes where a text is long enough for that to pay.

chunks of text -> (chunk, ids) in the same order
"""

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from minigpt.tokenizer import Tokenizer

Encoder = Callable[[Iterable[str]], Iterator[tuple[str, np.ndarray]]]
LONG = 2 * 10**7  # characters; below, starting processes takes longer than they save
of_this_process: Tokenizer | None = None  # set in the processes of a pool only


@contextlib.contextmanager
def encoder(tokenizer: Tokenizer, num_characters: int) -> Iterator[Encoder]:
    """A function from chunks to pairs of a chunk and its ids; it ends with the context."""
    by_table = tokenizer.kind in ("char", "byte")  # as fast as sending the text elsewhere
    if num_characters < LONG or by_table or os.cpu_count() == 1:
        yield partial(encode_here, tokenizer)
        return
    start = get_context("spawn")  # a fork would copy locks of threads that it does not copy
    with ProcessPoolExecutor(None, start, set_up, (tokenizer.to_json(),)) as pool:
        yield partial(encode_there, pool)


def encode_here(tokenizer: Tokenizer, chunks: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
    for chunk in chunks:
        yield chunk, tokenizer.encode_chunk(chunk)


def encode_there(
    pool: ProcessPoolExecutor, chunks: Iterable[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Keeps a few chunks ahead at work, never the whole text."""
    ahead = 4 * (os.cpu_count() or 1)
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process answers Ctrl-C
    threading.Thread(target=end_with_parent, daemon=True).start()
    of_this_process = Tokenizer.from_json(tokenizer)


def end_with_parent() -> None:
    """Without this, the processes of a parent that was killed would wait for ever."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def encode(chunk: str) -> np.ndarray:
    assert of_this_process is not None
    return of_this_process.encode_chunk(chunk)
