"""What a user did wrong, said in one line.

Every mistake a person can make ends in a `UserError`. Its message follows one pattern:
where it is: what is wrong; what is allowed; what to do. A script wraps its `main` in
`run_command`, which prints that line and exits with the code of the kind of mistake. `kill` and
a terminal that is closed end a command as Ctrl-C does, so that whatever is half done is cleaned up.

exception -> one line on stderr and an exit code
"""

import contextlib
import errno
import io
import os
import re
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn, TextIO

CONFIG = 2
DATA = 3
NON_FINITE = 4
RESOURCES = 5
LOCKED = 6
INTERRUPTED = 130
TERMINATED = 143
HUNG_UP = 129
EXIT_CODES = {
    signal.SIGINT: INTERRUPTED,
    signal.SIGTERM: TERMINATED,
    signal.SIGHUP: HUNG_UP,
}
LACKING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM}
LACKING |= {errno.EMFILE, errno.ENFILE, errno.EAGAIN}


class UserError(Exception):
    """A mistake that one clear line can explain; `exit_code` is one of this module's constants."""

    def __init__(self, message: str, exit_code: int = CONFIG) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Terminated(KeyboardInterrupt):
    """Somebody ended this process with `kill`, or by closing its terminal."""

    def __init__(self, exit_code: int = TERMINATED) -> None:
        super().__init__()
        self.exit_code = exit_code


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated(EXIT_CODES[signal.Signals(number)])


def heeded() -> list[signal.Signals]:
    """The signals that end a command; a terminal's end does not where `nohup` says so."""
    kept = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [number for number in EXIT_CODES if not (kept and number == signal.SIGHUP)]


def run_command(main: Callable[[list[str]], int | None]) -> NoReturn:
    """Runs `main(arguments)` and exits; a user's mistake is one line, unless `--debug` is given."""
    for number in heeded():
        if number != signal.SIGINT:  # which Python answers
            signal.signal(number, terminate)
    prepare_consoles()
    arguments = sys.argv[1:]
    if "--debug" in arguments:
        arguments.remove("--debug")
        sys.exit(main(arguments))
    try:
        require_current_folder()
        code = result_of(main, arguments)
        sys.stdout.flush()
        sys.exit(code)
    except UserError as error:
        exit_with(str(error), error.exit_code)
    except KeyboardInterrupt as stop:
        for number in EXIT_CODES:
            signal.signal(number, signal.SIG_IGN)  # once is enough: all that is left is to leave
        exit_with("stopped", code_of(stop))
    except BrokenPipeError:  # the reader of our output left, as `| head` does
        silence(sys.stdout)
        sys.exit(0)
    except (MemoryError, RuntimeError, ImportError) as error:
        if not is_lack_of_memory(error):
            raise
        exit_with(lack_of_memory(error), RESOURCES)
    except OSError as error:
        where, what = error.filename or "output", error.strerror or error
        code = RESOURCES if error.errno in LACKING else DATA
        exit_with(f"{where}: {what}; see to it and try again", code)


def code_of(stop: KeyboardInterrupt) -> int:
    return stop.exit_code if isinstance(stop, Terminated) else INTERRUPTED


def result_of(main: Callable[[list[str]], int | None], arguments: list[str]) -> str | int | None:
    try:
        return main(arguments)
    except SystemExit as end:  # after --help
        return end.code


def prepare_consoles() -> None:
    """Consoles that take every text: characters that one lacks are written as `\\xe9`.

    Where one was closed, as `>&-` does, no file opened later may take its place.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        console = getattr(sys, name)
        if console is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
        elif isinstance(console, io.TextIOWrapper):
            console.reconfigure(errors="backslashreplace")


def silence(console: TextIO) -> None:
    """Lets what is written to a console that is gone, and waits to be, vanish."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), console.fileno())


def require_current_folder() -> None:
    """Libraries end a process where there is none."""
    try:
        os.getcwd()
    except OSError:
        raise UserError("current folder: it was removed; change to one that exists", DATA) from None


def is_lack_of_memory(error: Exception) -> bool:
    """PyTorch tells of it by a RuntimeError, in words that depend on the device.

    Where there is too little for PyTorch itself, it is an ImportError.
    """
    words = str(error).lower()
    signs = ("out of memory", "allocate memory", "failed to map segment")
    return isinstance(error, MemoryError) or any(sign in words for sign in signs)


def lack_of_memory(error: Exception) -> str:
    """What was asked for, as far as it is told, and what there is."""
    import resource

    asked = re.search(r"allocate ([\d.]+ (?:bytes|[KMGT]iB))", str(error))
    need = f"{asked[1]} more were asked for, " if asked else ""
    have = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    have = have if limit == resource.RLIM_INFINITY else min(have, limit)
    advice = "use a smaller model, batch or context"
    return f"memory: not enough of it ({need}{have // 2**20} MiB in all); {advice}"


def exit_with(message: str, exit_code: int) -> NoReturn:
    """Prints `error: message` as a single line on stderr and exits."""
    line = "error: " + " ".join(message.splitlines())
    for console, last in ((sys.stdout, ""), (sys.stderr, line + "\n")):
        try:
            console.write(last)
            console.flush()
        except OSError:  # nobody can be told
            with contextlib.suppress(OSError):
                silence(console)
    sys.exit(exit_code)
