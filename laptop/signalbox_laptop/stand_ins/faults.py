"""Tell a stand-in to go wrong: refuse, limit the rate, hang, or do its work and lose the answer."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from signalbox_laptop.lambda_api.http_server import Request

# The limits of what a stand-in is told.
Seconds = Annotated[float, Field(ge=0, le=3600)]
Count = Annotated[int, Field(ge=0)]
Refusal = Annotated[int, Field(ge=400, le=599)]  # a status


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Say what happens to the requests it matches."""

    matching: str = ""  # part of "METHOD /path?query body"
    times: Count | None = None  # how often; None: until it is removed
    status: Refusal = 500
    retry_after: str | None = None
    hang_seconds: Seconds = 0  # before anything else
    lost: bool = False  # the work is done, and the client gets no answer

    @staticmethod
    def of(given: Mapping[str, Any]) -> Fault:
        """Read a fault from JSON; raise TypeError for an unknown field."""
        return Fault(**given)


class Faults:
    """Keep a stand-in's faults, used up in their order."""

    def __init__(self) -> None:
        self._faults: list[tuple[Fault, int]] = []
        self._lock = threading.Lock()
        self._over = threading.Event()

    def add(self, fault: Fault) -> None:
        with self._lock:
            self._faults.append((fault, 0))

    def replace(self, faults: Iterable[Fault]) -> None:
        """Set the faults; an empty list makes all well again."""
        with self._lock:
            self._faults = [(fault, 0) for fault in faults]

    def meet(self, request: Request) -> Fault | None:
        """Return the first fault that matches and is not used up, after any time that it hangs."""
        fault = self._take(f"{request.method} {request.target} {request.body.decode(errors='replace')}")
        if fault is not None and fault.hang_seconds:
            self._over.wait(fault.hang_seconds)
        return fault

    def end(self) -> None:
        """Release the requests that hang."""
        self._over.set()

    def _take(self, text: str) -> Fault | None:
        with self._lock:
            for at, (fault, used) in enumerate(self._faults):
                if fault.matching in text and (fault.times is None or used < fault.times):
                    self._faults[at] = (fault, used + 1)
                    return fault
        return None
