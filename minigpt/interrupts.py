"""Ctrl-C, `kill` and a closed terminal, answered at a moment when nothing is half done.

signals -> a flag that long work looks at
"""

import contextlib
import os
import signal
import stat
from types import FrameType

from minigpt.errors import EXIT_CODES, heeded


class Stopped(Exception):
    """Raised by `Interrupts.poll`, for the one who entered the context to catch."""


class Interrupts:
    """A context in which the first signal sets `exit_code` and the second ends the process."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.previous: dict = {}

    def __enter__(self) -> "Interrupts":
        self.previous = {number: signal.signal(number, self.note) for number in heeded()}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def __bool__(self) -> bool:
        return self.exit_code is not None

    def poll(self) -> None:
        """Raises Stopped after a signal; long work calls this where nothing is half done."""
        if self:
            raise Stopped

    def note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:  # it comes from the terminal and from the shell
            leave_terminal()
        elif self:
            os._exit(EXIT_CODES[signal.Signals(number)])
        self.exit_code = self.exit_code or EXIT_CODES[signal.Signals(number)]


def leave_terminal() -> None:
    """What is still said would fail where the terminal is gone."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if stat.S_ISCHR(os.fstat(descriptor).st_mode):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
