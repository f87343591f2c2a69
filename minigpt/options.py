"""Options as argparse reads them, with mistakes told like all others.

arguments -> options
"""

import argparse
from typing import NoReturn

from minigpt.errors import UserError


class Parser(argparse.ArgumentParser):
    """A mistake raises UserError instead of printing the usage and exiting."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"command line: {message}; see --help")
