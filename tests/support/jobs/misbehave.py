"""Do what no job should; no other of the batch may suffer."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.rows import dict_row

from signalbox.packs.job_payload import JobPayload
from signalbox.packs.outcome import Cancelled, Completed, More, RateLimited, Snooze, Transient
from signalbox.worker.job_context import JobContext


class Misbehave(JobPayload):
    """Name the deed."""

    deed: str


class Unspeakable(Exception):
    """Refuse to say its own words."""

    def __str__(self) -> str:
        raise RuntimeError("not even that")


def misbehave(context: JobContext) -> Any:
    """Do the deed."""
    return DEEDS[context.payload.deed](context)


def _raise(error: BaseException) -> Any:
    raise error


def _deep() -> list[Any]:
    found: list[Any] = []
    for _ in range(sys.getrecursionlimit()):  # which other tests of the process may raise
        found = [found]
    return found


def _catch_all(context: JobContext) -> None:
    for _ in range(3):
        with suppress(Exception):
            for _ in range(1000):
                time.sleep(0.05)


def _catch_in_statement(context: JobContext) -> None:
    with suppress(Exception):
        context.db.execute("SELECT pg_sleep(60)")


def _rows_as_dicts(context: JobContext) -> None:
    context.db.row_factory = dict_row  # type: ignore[assignment]


def _no_autocommit(context: JobContext) -> None:
    context.db.autocommit = False


def _read_only(context: JobContext) -> None:
    context.db.read_only = True


def _no_time(context: JobContext) -> None:
    context.db.execute("SET statement_timeout = 1")


# What it answers that nobody can record.
UNRECORDABLE: dict[str, Callable[[JobContext], Any]] = {
    "NUL in the result": lambda _: Completed({"text": "a\0b"}),
    "NUL in a name of the result": lambda _: Completed({"a\0b": 1}),
    "half a pair in the result": lambda _: Completed("\ud800"),
    "no number": lambda _: Completed(float("nan")),
    "a time": lambda _: Completed({"at": datetime.now(UTC)}),
    "deep": lambda _: Completed(_deep()),
    "a number too large": lambda _: Completed(10**140_000),
    "files as one text": lambda _: Completed(1, "s3://bucket/key"),
    "files that are none": lambda _: Completed(1, [{"key": 1}]),  # type: ignore[list-item]
    "a set as the cursor": lambda _: More({1, 2}),
    "NUL in the cursor": lambda _: More("\0"),
    "a delay that is none": lambda _: Snooze(30, "later"),  # type: ignore[arg-type]
}
# What can be brought into a form that fits.
ODD: dict[str, Callable[[JobContext], Any]] = {
    "a share above all": lambda _: More(1, percent=400),
    "half a percent": lambda _: More(1, percent=40.5),  # type: ignore[arg-type]
    "NUL in the reason": lambda _: Snooze(timedelta(1), "a\0b"),
    "for ever": lambda _: Snooze(timedelta.max, "later"),
    "NUL in the words of a cancellation": lambda _: Cancelled("a\0b"),
    "rate-limited for ever": lambda _: _raise(RateLimited("wait", timedelta.max)),
    "rate-limited for no time that one knows": lambda _: _raise(RateLimited("wait", None)),
    "rate-limited for seconds": lambda _: _raise(RateLimited("wait", 30)),  # type: ignore[arg-type]
    "transient for seconds": lambda _: _raise(Transient("wait", 30)),  # type: ignore[arg-type]
    "an error without words": lambda _: _raise(Unspeakable()),
    "the end of the process": lambda _: sys.exit(3),
    "every error caught": _catch_all,
    "an error caught in a statement": _catch_in_statement,
    "rows as dicts": _rows_as_dicts,
    "no autocommit": _no_autocommit,
    "read only": _read_only,
}
DEEDS = UNRECORDABLE | ODD
DEEDS["no time for statements"] = _no_time
DEEDS["nothing wrong"] = lambda _: Completed("\\u0000")
DEEDS["interrupted"] = lambda _: _raise(KeyboardInterrupt())
