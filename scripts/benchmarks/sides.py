"""Sides of a comparison, each in a process of its own, so that none changes another's memory.

function that makes a call -> the call, over there
"""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.measuring import Call


class Side:
    """`make(*arguments)` gives what one turn of this side calls, in the new process."""

    def __init__(self, threads: int, make: Callable[..., Call], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, there = context.Pipe()
        process = context.Process(
            target=take_turns, args=(there, threads, make, arguments), daemon=True
        )
        process.start()
        self.connection.recv()

    def __call__(self) -> None:
        """One turn, from beginning to end."""
        self.connection.send("turn")
        self.connection.recv()

    def close(self) -> int:
        """Ends the process; returns the most memory that it held, in bytes."""
        self.connection.send("end")
        return self.connection.recv()


def take_turns(
    connection: Connection, threads: int, make: Callable[..., Call], arguments: tuple
) -> None:
    import resource

    import torch

    torch.set_num_threads(threads)
    call = make(*arguments)
    connection.send("ready")
    while connection.recv() == "turn":
        call()
        connection.send("done")
    connection.send(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
