"""What a user did wrong, said in one line.

Every mistake a person can make ends in a `UserError`. Its message follows one pattern:
where it is: what is wrong; what is allowed; what to do. A script wraps its `main` in
`run_command`, which prints that line and exits with the code of the kind of mistake. `kill`
ends a command as Ctrl-C does, so that whatever is half done is cleaned up.

exception -> one line on stderr and an exit code
"""

import os
import re
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

CONFIG = 2
DATA = 3
NON_FINITE = 4
RESOURCES = 5
LOCKED = 6
INTERRUPTED = 130
TERMINATED = 143


class UserError(Exception):
    """A mistake that one clear line can explain; `exit_code` is one of this module's constants."""

    def __init__(self, message: str, exit_code: int = CONFIG) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Terminated(KeyboardInterrupt):
    """Somebody ended this process with `kill`."""


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def run_command(main: Callable[[list[str]], int | None]) -> NoReturn:
    """Runs `main(arguments)` and exits; a user's mistake is one line, unless `--debug` is given."""
    signal.signal(signal.SIGTERM, terminate)
    open_missing_consoles()
    arguments = sys.argv[1:]
    if "--debug" in arguments:
        arguments.remove("--debug")
        sys.exit(main(arguments))
    try:
        sys.exit(main(arguments))
    except UserError as error:
        exit_with(str(error), error.exit_code)
    except KeyboardInterrupt as stop:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # once is enough: all that is left is to leave
        exit_with("stopped", TERMINATED if isinstance(stop, Terminated) else INTERRUPTED)
    except BrokenPipeError:  # the reader of our output left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (MemoryError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        exit_with(lack_of_memory(error), RESOURCES)
    except OSError as error:
        exit_with(f"{error.filename or 'system'}: {error.strerror or error}", RESOURCES)


def open_missing_consoles() -> None:
    """Where a console was closed, as `>&-` does, no file opened later may take its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def is_lack_of_memory(error: Exception) -> bool:
    """PyTorch tells of it by a RuntimeError, in words that depend on the device."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in words or "allocate memory" in words


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
    line = " ".join(message.splitlines())
    encoding = sys.stderr.encoding or "ascii"
    print("error: " + line.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)
    sys.exit(exit_code)
