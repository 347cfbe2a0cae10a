"""List what an observing source offers: instants, each with its files, and the spans of keys to list for them.

Folders are by day. One listing a day, begun at the wanted hour, costs a call per thousand files, and so less than one
call an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from forecasts.sources.mirror import Entry, Mirror, Span, list_spans

DAY = timedelta(days=1)
END = "\x7f"  # sorts behind any continuation of a key


@dataclass(frozen=True, slots=True)
class Part:
    """Describe one file's place: its instant, and which part of that it holds."""

    instant: datetime
    part: str = ""


class Layout(Protocol):
    """Declare how one source names its files."""

    @property
    def files_per_instant(self) -> int: ...

    def folder(self, day: datetime) -> str: ...

    def stem(self, instant: datetime) -> str:
        """Return what keys of that hour begin with."""
        ...

    def read(self, key: str) -> Part | None:
        """Read a key; return None if it is no file of the product."""
        ...


def spans_between(layout: Layout, since: datetime, until: datetime) -> list[Span]:
    """Return one span for each day, from the hour of the first instant to the hour of the last."""
    days = list(_days(since, until))
    return [
        Span(
            layout.folder(day),
            after=layout.stem(since) if day == days[0] else "",
            last=(layout.stem(until) if day == days[-1] else layout.folder(day)) + END,
        )
        for day in days
    ]


def instants_between(
    mirror: Mirror, layout: Layout, since: datetime, until: datetime
) -> dict[datetime, tuple[str, ...]]:
    """Return the references of each instant after the first and not after the second that has all its files."""
    entries = list_spans(mirror, spans_between(layout, since, until))
    files = _by_instant(entries, layout.read)
    return {
        instant: tuple(mirror.reference(key) for key in parts.values())
        for instant, parts in sorted(files.items())
        if since < instant <= until and len(parts) >= layout.files_per_instant
    }


def _by_instant(entries: Iterable[Entry], read: Callable[[str], Part | None]) -> Mapping[datetime, Mapping[str, str]]:
    """Return keys by instant and part. Of two for one part, take the later, remade one; ignore empty files."""
    files: dict[datetime, dict[str, str]] = {}
    for entry in entries:
        place = read(entry.key) if entry.size != 0 else None
        if place is not None:
            files.setdefault(place.instant, {})[place.part] = entry.key
    return files


def _days(since: datetime, until: datetime) -> Iterator[datetime]:
    day = since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    while day <= until:
        yield day
        day += DAY
