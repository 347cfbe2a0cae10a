"""Show the current step of a long command: a spinner in a terminal, a plain line per step elsewhere.

It goes to stderr, so that stdout has the result alone.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from signalbox_cli.terminal import console, shows_unicode


class Steps:
    """Own the terminal's last line while it is entered."""

    def __init__(self) -> None:
        self._console: Console = console(stderr=True)
        self._spinner: Status | None = None
        self._step = ""
        self._began = 0.0

    def begin(self, step: str) -> None:
        """Mark the previous step as done and begin the next."""
        self._finish(well=True)
        self._step, self._began = step, time.monotonic()
        if not self._console.is_terminal:
            self._console.print(step)
            return
        if self._spinner is None:
            self._spinner = self._console.status(step)
            self._spinner.start()
        self._spinner.update(step)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if self._spinner is not None:
            self._spinner.stop()
        self._finish(well=kind is None)

    def _finish(self, *, well: bool) -> None:
        if not self._step or not self._console.is_terminal:
            return
        marks = "✓✗" if shows_unicode(self._console) else "+x"
        line = Text(marks[0] if well else marks[1], style="green" if well else "red")
        line.append(f" {self._step}", style="default")
        line.append(f"  {time.monotonic() - self._began:.1f} s", style="bright_black")
        self._console.print(line)
        self._step = ""
