"""Ask a source's mirrors in order: each is one place with the source's files, under the same keys.

The first that answers serves. A mirror that can't be reached, refuses, takes too long or answers with no listing is
logged and counted, and the next is asked. Only if all fail is it an error, which names each and why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from forecasts.errors import MirrorFailed, MirrorsFailed
from signalbox.ledger.context import Context

LISTINGS_AT_ONCE = 8

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Entry:
    """Describe one file of a listing."""

    key: str
    size: int | None  # None if the listing does not tell


@dataclass(frozen=True, slots=True)
class Span:
    """Select keys under one prefix: after the first, not beyond the last."""

    prefix: str
    after: str = ""
    last: str = "\U0010ffff"

    def holds(self, key: str) -> bool:
        return key.startswith(self.prefix) and self.after < key <= self.last


class Mirror(Protocol):
    """Declare what the sources ask of a mirror. Each call may raise MirrorFailed."""

    @property
    def name(self) -> str: ...

    def list_keys(self, span: Span) -> list[Entry]: ...

    def list_folders(self, prefix: str, after: str) -> list[str]:
        """Return the folders whose names begin with the prefix, without their slash, from `after` on."""
        ...

    def has_data(self, key: str) -> bool:
        """Say whether the file has data, for entries without a size."""
        ...

    def reference(self, key: str) -> str:
        """Return the address by which the worker finds it."""
        ...


def first_answer(context: Context, source: str, mirrors: Sequence[Mirror], ask: Callable[[Mirror], Result]) -> Result:
    """Return the answer of the first mirror that can give one."""
    faults = []
    for mirror in mirrors:
        try:
            return ask(mirror)
        except MirrorFailed as error:
            context.log.warning("mirror.failed", extra={"source": source, "mirror": mirror.name, "why": str(error)})
            context.metrics.count("MirrorsFailed")
            faults.append(f"{mirror.name}: {error}")
    raise MirrorsFailed(f"no mirror of {source} answers: {'; '.join(faults)}")


def list_spans(mirror: Mirror, spans: Sequence[Span]) -> list[Entry]:
    """Return all entries in the order of the spans; make several calls at once, and none after the first that fails."""
    if len(spans) == 1:
        return mirror.list_keys(spans[0])
    threads = ThreadPoolExecutor(LISTINGS_AT_ONCE)
    try:
        return [entry for entries in threads.map(mirror.list_keys, spans) for entry in entries]
    finally:
        threads.shutdown(cancel_futures=True)
