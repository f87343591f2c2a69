"""Packages that only some commands need: there, or one line that says how to get them.

name of a module -> the module
"""

import importlib
from types import ModuleType
from typing import Any

from minigpt.errors import CONFIG, UserError


def required(module: str, extra: str, where: str, needs: str) -> Any:
    """The module, imported; raises UserError, which begins with `where`, if it isn't installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        message = f"{where}: {needs} needs the package {package}, which is not installed"
        raise UserError(f"{message}; pip install -e '.[{extra}]' brings it", CONFIG) from None


def first_of(*modules: str) -> ModuleType | None:
    """The first of several modules that is there."""
    for module in modules:
        try:
            return importlib.import_module(module)
        except ImportError:
            continue
    return None
