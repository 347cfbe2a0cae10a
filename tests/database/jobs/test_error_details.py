"""Values quoted in a database's error reach no row, log or raised error unless the operator asks."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from signalbox.postgres.connection import Connection
from signalbox.postgres.error_details import conceal
from signalbox.testing.stage import NOON, Stage
from tests.support.tasks import note_run

MARKER = "marker-5e1d"
TOLD = 'new row for relation "marked" violates check constraint "marked_amount_check" (23514, marked_amount_check)'
Fail = Callable[[Any], None]


def fail(db: Connection) -> None:
    """Insert a bad row that PostgreSQL quotes in DETAIL."""
    db.execute("INSERT INTO marked VALUES (%s, -1)", (MARKER,))


def plainly(context: Any) -> None:
    fail(context.db)


def in_a_copy(context: Any) -> None:
    with context.db.cursor().copy("COPY marked FROM STDIN") as copy:
        copy.write_row((MARKER, -1))


def in_a_transaction(context: Any) -> None:
    with context.db.transaction():
        fail(context.db)


def as_the_cause(context: Any) -> None:
    try:
        fail(context.db)
    except psycopg.Error as error:
        raise RuntimeError("no such luck") from error


def as_the_context(context: Any) -> None:
    try:
        fail(context.db)
    except psycopg.Error:
        raise RuntimeError("no such luck")  # noqa: B904


def in_other_words(context: Any) -> None:
    try:
        fail(context.db)
    except psycopg.Error as error:
        raise RuntimeError(f"no such luck: {error}") from None


def in_the_log(context: Any) -> None:
    try:
        fail(context.db)
    except psycopg.Error as error:
        context.log.exception("amount.refused", extra={"why": str(error)})
        raise


def on_a_connection_of_its_own(context: Any) -> None:
    with psycopg.connect(context.db.info.dsn) as own:
        fail(own)


def on_a_connection_of_its_own_and_in_the_log(context: Any) -> None:
    try:
        on_a_connection_of_its_own(context)
    except psycopg.Error:
        context.log.exception("amount.refused")
        raise


def in_a_group(context: Any) -> None:
    with psycopg.connect(context.db.info.dsn) as own:
        try:
            fail(own)
        except psycopg.Error as error:
            raise ExceptionGroup("several", [error]) from None


WAYS = [
    plainly,
    in_a_copy,
    in_a_transaction,
    as_the_cause,
    as_the_context,
    in_other_words,
    in_the_log,
    on_a_connection_of_its_own,
    on_a_connection_of_its_own_and_in_the_log,
    in_a_group,
]


@pytest.fixture
def stage(stage: Stage, capfd: pytest.CaptureFixture[str]) -> Stage:
    """Give the stage a log of its own: one name writes only to its first stream."""
    return stage.another(stack=f"details-{uuid4().hex[:8]}")


@pytest.fixture
def marked(db: psycopg.Connection, notes: None) -> None:
    db.execute("CREATE TABLE marked (name text, amount int CHECK (amount >= 0))")


def rows_of(db: psycopg.Connection) -> str:
    """Return every row of the engine's tables."""

    def texts() -> Iterator[str]:
        tables = db.execute("SELECT relname FROM pg_class WHERE relnamespace = 'signalbox'::regnamespace "
                            "AND relkind = 'r'").fetchall()  # fmt: skip
        for (table,) in tables:
            name = sql.Identifier("signalbox", table)
            yield from (row for (row,) in db.execute(sql.SQL("SELECT t::text FROM {} AS t").format(name)).fetchall())

    return "\n".join(texts())


def fail_job(stage: Stage, job_type: str, way: Fail, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(stage.job_types.find(job_type), "perform", way)
    job_id = stage.submit(job_type, payload={"subject": "s"} if job_type == "note_job" else {}, max_attempts=1)
    stage.work(job_id)
    return stage.job(job_id)


@pytest.mark.usefixtures("marked", "lanes")
@pytest.mark.parametrize("job_type", ["do_nothing", "note_job"])
@pytest.mark.parametrize("way", WAYS)
def test_a_failed_job_keeps_nothing_of_the_row_that_failed(
    stage: Stage,
    db: psycopg.Connection,
    job_type: str,
    way: Fail,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    job = fail_job(stage, job_type, way, monkeypatch)
    assert job["status"] == "failed"
    assert MARKER not in rows_of(db)
    assert MARKER not in "".join(capfd.readouterr())


@pytest.mark.usefixtures("marked", "lanes")
def test_what_is_kept_is_message_state_and_constraint(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = fail_job(stage, "do_nothing", plainly, monkeypatch)
    assert (job["error_details"]["type"], job["error_details"]["message"]) == ("CheckViolation", TOLD)


@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize("way", WAYS)
def test_a_failed_task_keeps_and_raises_nothing_of_the_row_that_failed(
    stage: Stage, db: psycopg.Connection, way: Fail, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(note_run, "note_run", way)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each way has a type of its own
        stage.run("note_run", NOON)
    assert MARKER not in "".join(traceback.format_exception(caught.value))
    assert db.execute("SELECT count(*) FROM signalbox.job_history WHERE status = 'failed'").fetchone() == (1,)
    assert MARKER not in rows_of(db)
    assert MARKER not in "".join(capfd.readouterr())


@pytest.mark.usefixtures("marked")
def test_an_error_of_the_engines_own_statements_quotes_no_row(stage: Stage) -> None:
    """Lambda passes on what an operation raises to the log, failure queue and command line."""
    with pytest.raises(psycopg.errors.CheckViolation) as caught:
        fail(stage.app.resources.database.connection())
    assert str(caught.value) == TOLD


@pytest.mark.usefixtures("marked", "lanes")
def test_an_operator_may_ask_for_the_details(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stage = stage.another(stack=f"details-{uuid4().hex[:8]}", database_error_details="on")
    job = fail_job(stage, "do_nothing", in_the_log, monkeypatch)
    monkeypatch.setattr(note_run, "note_run", on_a_connection_of_its_own)
    with pytest.raises(psycopg.errors.CheckViolation, match=MARKER):
        stage.run("note_run", NOON)
    assert f"DETAIL:  Failing row contains ({MARKER}, -1)." in job["error_details"]["message"]
    assert MARKER in "".join(capfd.readouterr())


def test_errors_without_a_server_keep_their_words() -> None:
    error = psycopg.OperationalError("the connection is lost")
    conceal(error)
    assert str(error) == "the connection is lost"
