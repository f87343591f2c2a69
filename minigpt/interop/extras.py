"""Packages that only some commands need, asked for in one line where they are missing.

name -> module
"""

import importlib
from typing import Any

from minigpt.errors import UserError


def need(package: str, extra: str, what_for: str) -> Any:
    """The module `package`; raises UserError with the command that installs it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        install = f"pip install -c constraints.txt -e '.[{extra}]'"
        message = f"{what_for}: needs the package {package}, which is not installed"
        raise UserError(f"{message}; install it with {install}") from None
