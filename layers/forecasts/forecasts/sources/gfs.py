"""Find cycles of GFS, the global model: four a day, each complete when all its forecast hours are there, with indexes.

Keys follow a template, which is a setting, since NOAA's next version moves them. A later poll takes what is not
complete yet. A poll costs one listing of days and one for each cycle that the days may hold, forty at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from string import Formatter

from forecasts.sources.mirror import LISTINGS_AT_ONCE, Entry, Mirror, Span, list_spans
from signalbox.errors import SettingsRefused

CYCLE = timedelta(hours=6)
HOURS = (*range(121), *range(123, 385, 3))
# The oldest go first, so that the same poll finds the rest another time.
MOST_LISTED = 40
_FIELDS = {"date", "cycle", "hour"}


@dataclass(frozen=True, slots=True)
class Cycle:
    """Describe what a mirror has of one cycle."""

    instant: datetime
    complete: bool
    reference: str  # the common part of its keys


@dataclass(frozen=True, slots=True)
class Cycles:
    """List what upstream has, oldest first."""

    listed: tuple[Cycle, ...]
    left_over: int = 0  # more cycles, on days that are there, than one poll lists


@dataclass(frozen=True, slots=True)
class KeyTemplate:
    """Build the names of upstream's files."""

    text: str

    @staticmethod
    def of(text: str) -> KeyTemplate:
        try:
            fields = {field for _, field, _, _ in Formatter().parse(text) if field is not None}
            text.format(date="", cycle="", hour=0)
        except (ValueError, KeyError, IndexError):
            fields = set()
        if fields != _FIELDS or text.index("{hour") < max(text.rindex("{date"), text.rindex("{cycle")):
            raise SettingsRefused(
                f"FORECASTS_GFS_KEY_TEMPLATE is '{text}': it must hold {{date}} and {{cycle}}, and after them {{hour}}"
            )
        return KeyTemplate(text)

    def data_key(self, cycle: datetime, hour: int) -> str:
        return self.text.format(date=f"{cycle:%Y%m%d}", cycle=f"{cycle:%H}", hour=hour)

    def keys(self, cycle: datetime) -> list[str]:
        """Return all keys of a complete cycle: 209 files and the index of each."""
        data = [self.data_key(cycle, hour) for hour in HOURS]
        return data + [f"{key}.idx" for key in data]

    def prefix(self, cycle: datetime) -> str:
        """Return what the cycle's keys begin with, up to the hour."""
        return self.text.partition("{hour")[0].format(date=f"{cycle:%Y%m%d}", cycle=f"{cycle:%H}")

    @property
    def days_prefix(self) -> str | None:
        """Return what the folders of days begin with, if each day has one."""
        before, _, after = self.text.partition("{date")
        return before if "/" in after else None


def cycles_between(since: datetime, until: datetime) -> list[datetime]:
    """Return the cycles after the first instant and not after the second, oldest first."""
    midnight = since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    count = max(0, int((until - midnight) / CYCLE) + 1)
    return [cycle for n in range(count) if since < (cycle := midnight + n * CYCLE) <= until]


def is_complete(keys: Iterable[str], sizes: Mapping[str, int]) -> bool:
    return all(sizes.get(key, 0) > 0 for key in keys)


def find_cycles(mirror: Mirror, template: KeyTemplate, wanted: Sequence[datetime]) -> Cycles:
    """Return what the mirror has of the wanted cycles, without those of which it has nothing."""
    if not wanted:
        return Cycles(())
    there = _there(mirror, template, wanted)
    listed = there[:MOST_LISTED]
    sizes = _sizes(mirror, [Span(template.prefix(cycle)) for cycle in listed])
    cycles = (_judge(mirror, template, cycle, sizes) for cycle in listed)
    return Cycles(tuple(cycle for cycle in cycles if cycle is not None), len(there) - len(listed))


def _there(mirror: Mirror, template: KeyTemplate, cycles: Sequence[datetime]) -> list[datetime]:
    """Return cycles on days that have a folder: days long gone must not use up what a poll may list."""
    prefix = template.days_prefix
    if prefix is None:
        return list(cycles)
    folders = mirror.list_folders(prefix, f"{prefix}{cycles[0]:%Y%m%d}")
    days = {folder.removeprefix(prefix)[:8] for folder in folders}
    return [cycle for cycle in cycles if f"{cycle:%Y%m%d}" in days]


def _sizes(mirror: Mirror, spans: Sequence[Span]) -> dict[str, Entry]:
    return {entry.key: entry for entry in list_spans(mirror, spans)}


def _judge(mirror: Mirror, template: KeyTemplate, cycle: datetime, entries: Mapping[str, Entry]) -> Cycle | None:
    prefix, keys = template.prefix(cycle), template.keys(cycle)
    found = [entries[key] for key in keys if key in entries]
    if not found:
        return None
    whole = len(found) == len(keys) and is_complete(keys, _known(mirror, found))
    return Cycle(cycle, whole, mirror.reference(prefix))


def _known(mirror: Mirror, entries: Sequence[Entry]) -> dict[str, int]:
    """Return sizes by key; if the listing gives none, 1 for a file that has data."""
    sizes = {entry.key: entry.size for entry in entries if entry.size is not None}
    untold = [entry.key for entry in entries if entry.size is None]
    if not untold or not all(sizes.values()):
        return sizes
    with ThreadPoolExecutor(LISTINGS_AT_ONCE) as threads:
        return sizes | dict(zip(untold, map(int, threads.map(mirror.has_data, untold)), strict=True))
