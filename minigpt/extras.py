"""Packages that only some commands need: there, or one line that says how to get them.

name of a module -> the module
"""

import importlib
import importlib.util
from types import ModuleType
from typing import Any

from minigpt.errors import CONFIG, UserError


def required(module: str, extra: str, where: str, needs: str) -> Any:
    """The module, imported; raises UserError, which begins with `where`, if it isn't installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise missing(module, extra, where, needs) from None


def require(module: str, extra: str, where: str, needs: str) -> None:
    """Raises UserError if a module isn't installed; takes no time to import it."""
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise missing(module, extra, where, needs)


def missing(module: str, extra: str, where: str, needs: str) -> UserError:
    message = f"{where}: {needs} needs the package {module}, which is not installed"
    return UserError(
        f"{message}; install it with pip install -c constraints.txt -e '.[{extra}]'", CONFIG
    )


def first_of(*modules: str) -> ModuleType | None:
    """The first of several modules that is there."""
    for module in modules:
        try:
            return importlib.import_module(module)
        except ImportError:
            continue
    return None
