"""Adapt argparse for `signalbox`: keep examples as they were written, and report a mistake in one line."""

from __future__ import annotations

import argparse
import textwrap
from typing import NoReturn

from signalbox_cli.errors import UsageRefused

_WIDTH = 100


class CommandParser(argparse.ArgumentParser):
    """Parse the options of one command."""

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            description=f"{description[0].upper()}{description[1:]}.",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            # An abbreviation that works today becomes ambiguous once an option is added.
            allow_abbrev=False,
        )

    def explain(self, text: str) -> None:
        """Say more than the summary does, above the options."""
        self.description = textwrap.fill(f"{self.description} {text}", _WIDTH)

    def error(self, message: str) -> NoReturn:
        raise UsageRefused(f"{message.removeprefix('argument ')}; `{self.prog} --help` shows examples")
