"""Race a task's run against one statement by hand that has the same effect on the same rows, turn by turn.

The run is the archiver's, from its payload to its answer, in a process of its own, so that its memory is measured apart
from the benchmark's. Its messages are counted and not sent. Each turn has a database of its own, copied from a filled
one: rows that were put back would lie elsewhere than before.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bench.ratio import Ratio
from forecasts.pack import PACK
from signalbox.engine_pack import ENGINE
from signalbox.migrate import migrations

ROUNDS = 4


@dataclass(frozen=True, slots=True)
class ByHand:
    """Give a statement that does what the task does, with a bound if the two are compared by it."""

    what: str
    sql: str
    bound: float | None


@dataclass(frozen=True, slots=True)
class Race:
    """Describe one task, the rows that it is raced on, and its opponents."""

    label: str
    task: str
    now: datetime
    items: int
    fill: Sequence[str]
    by_hand: Sequence[ByHand]


@dataclass(frozen=True, slots=True)
class Measured:
    """Describe one run of the task."""

    items: int
    seconds: float
    longest: float  # the longest transaction, in seconds
    megabytes: float  # the process's largest size


def run_race(dsn: str, race: Race) -> list[Ratio]:
    _fill(dsn, race)
    turns = [_turn(dsn, race) for _ in range(ROUNDS + 1)][1:]
    runs = [run for run, _ in turns]
    longest, largest = max(run.longest for run in runs), max(run.megabytes for run in runs)
    print(f"{race.label}: longest transaction {longest * 1000:.0f} ms, bound 500; memory {largest:.0f} MB, bound 200")
    ours = median(run.seconds for run in runs) * 1000
    return [
        Ratio(race.label, opponent.what, ours, median(taken[number] for _, taken in turns) * 1000, opponent.bound)
        for number, opponent in enumerate(race.by_hand)
    ]


def _fill(dsn: str, race: Race) -> None:
    with psycopg.connect(dsn, autocommit=True) as root:
        root.execute("DROP DATABASE IF EXISTS bench_filled")
        root.execute("CREATE DATABASE bench_filled")
    with psycopg.connect(make_conninfo(dsn, dbname="bench_filled"), autocommit=True) as connection:
        migrations.apply(connection, [ENGINE, PACK], "bench")
        connection.execute("SET session_replication_role = replica")  # foreign keys hold without their checks
        for statement in race.fill:
            connection.execute(statement.encode())
        connection.execute("VACUUM (FREEZE, ANALYZE)")


@contextmanager
def _copy(dsn: str) -> Iterator[str]:
    """Copy the filled database as it was, with nothing left to be written to the disk."""
    with psycopg.connect(dsn, autocommit=True) as root:
        root.execute("CREATE DATABASE bench_copy TEMPLATE bench_filled STRATEGY FILE_COPY")
        try:
            yield make_conninfo(dsn, dbname="bench_copy")
        finally:
            root.execute("DROP DATABASE bench_copy WITH (FORCE)")


def _turn(dsn: str, race: Race) -> tuple[Measured, list[float]]:
    taken = []
    for opponent in race.by_hand:
        with _copy(dsn) as copy:
            taken.append(_do_by_hand(copy, opponent, race))
    with _copy(dsn) as copy:
        return _run_apart(copy, race), taken


def _do_by_hand(dsn: str, opponent: ByHand, race: Race) -> float:
    with psycopg.connect(dsn, autocommit=True) as connection:
        began = perf_counter()
        cursor = connection.execute(opponent.sql.encode(), {"now": race.now})
        if cursor.description:
            cursor.fetchall()
        took = perf_counter() - began
        _require(cursor.rowcount, race)
    return took


def _run_apart(dsn: str, race: Race) -> Measured:
    context = multiprocessing.get_context("spawn")
    inbox, outbox = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(outbox, _url(dsn), race.task, race.now))
    process.start()
    measured: Measured = inbox.recv()
    process.join()
    _require(measured.items, race)
    return measured


def _run(outbox: Any, url: str, task: str, now: datetime) -> None:
    from signalbox.app import App
    from signalbox.invocation import Invocation

    os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
    engine = App.start({"SIGNALBOX_STACK": "bench", "SIGNALBOX_DATABASE_URL": url, "SIGNALBOX_PACKS": "forecasts"})
    module = import_module(f"forecasts.tasks.{task}")
    if hasattr(module, "publish"):
        vars(module)["publish"] = lambda _sqs, _url, messages, *, queue: len(messages)
        _ = engine.resources.clients.sqs
    engine.resources.database.connection()
    with _transactions() as taken, redirect_stdout(io.StringIO()):
        began = perf_counter()
        answer = engine.run_task({"task": task, "force": True}, Invocation.of("bench", now, 300))
        took = perf_counter() - began
    outbox.send(Measured(answer["items"], took, max(taken), peak_megabytes()))


def peak_megabytes() -> float:
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    # On Linux rusage begins with the size of the process that started this one.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("ascii").splitlines())
    return int(status["VmHWM"].split()[0]) / (1 << 10)


@contextmanager
def _transactions() -> Iterator[list[float]]:
    """Measure each transaction, a block of statements or one that commits by itself."""
    taken: list[float] = []
    execute, transaction = psycopg.Connection.execute, psycopg.Connection.transaction

    def timed_execute(*args: Any, **kwargs: Any) -> Any:
        began = perf_counter()
        try:
            return execute(*args, **kwargs)
        finally:
            taken.append(perf_counter() - began)

    @contextmanager
    def timed_transaction(*args: Any, **kwargs: Any) -> Iterator[Any]:
        began = perf_counter()
        with transaction(*args, **kwargs) as block:
            yield block
        taken.append(perf_counter() - began)

    psycopg.Connection.execute = timed_execute  # type: ignore[method-assign]
    psycopg.Connection.transaction = timed_transaction  # type: ignore[method-assign]
    yield taken
    psycopg.Connection.execute, psycopg.Connection.transaction = execute, transaction  # type: ignore[method-assign]


def _url(dsn: str) -> str:
    parts = conninfo_to_dict(dsn)
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}&port={parts['port']}"


def _require(items: int, race: Race) -> None:
    if items != race.items:
        raise RuntimeError(f"{items} rows were worked on instead of {race.items}")
