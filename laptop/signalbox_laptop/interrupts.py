"""SIGINT and SIGTERM as a request to stop: KeyboardInterrupt, once, and not in the middle of what must stay whole."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """To be made in the main thread, where Python raises what a signal asks for. A second request changes nothing:
    what ends because of the first is left to end."""

    def __init__(self) -> None:
        self._held = self._asked = False
        signal.signal(signal.SIGINT, self._ask)
        signal.signal(signal.SIGTERM, self._ask)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Until the end of the block a request waits. For beginnings: a thread or a process that is interrupted after
        it began and before it is written down would be nobody's to end."""
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
