"""Ctrl-C and `kill`, answered at a moment when nothing is half done.

signals -> a flag that long work looks at
"""

import os
import signal
from types import FrameType

from minigpt.errors import INTERRUPTED, TERMINATED

EXIT_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


class Stopped(Exception):
    """Raised by `Interrupts.poll`, for the one who entered the context to catch."""


class Interrupts:
    """A context in which the first signal sets `exit_code` and the second ends the process."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.previous: dict = {}

    def __enter__(self) -> "Interrupts":
        self.previous = {number: signal.signal(number, self.note) for number in EXIT_CODES}
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
        if self:
            os._exit(EXIT_CODES[signal.Signals(number)])
        self.exit_code = EXIT_CODES[signal.Signals(number)]
