"""Turn SIGINT and SIGTERM into one KeyboardInterrupt, which never interrupts a section that must stay whole."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Request a stop once. Make it in the main thread, where Python raises what a signal asks for. Further signals
    change nothing: the stop that the first one began is left to finish."""

    def __init__(self) -> None:
        self._held = self._asked = False
        signal.signal(signal.SIGINT, self._ask)
        signal.signal(signal.SIGTERM, self._ask)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Delay a request until the end of the block. Use it while starting: a thread or process that is interrupted
        after it began and before it is recorded would never be stopped."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._asked:
            raise KeyboardInterrupt

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        already, self._asked = self._asked, True
        if not already and not self._held:
            raise KeyboardInterrupt
