"""The client submits in the caller's transaction and sends once that is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row, dict_row, namedtuple_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from signalbox import AsyncClient, Client, Dependency, DriverRefused, JobRefused, JobTypeUnknown, NewJob, Pack
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import count
from signalbox.testing.stage import Stage
from tests.support.jobs import TEST_JOB_TYPES
from tests.support.lock_waits import wait_until_blocked

JOBS = "signalbox.jobs"
PACK = Pack("tests", (), Path("none"), TEST_JOB_TYPES)
JOB = NewJob("do_nothing", {"number": 7})


@pytest.fixture
def client(lanes: AwsStandIn) -> Client:
    return Client("signalbox", [PACK])


@pytest.fixture
def async_client(lanes: AwsStandIn) -> AsyncClient:
    return AsyncClient("signalbox", [PACK])


@pytest.fixture
def url(writer: str) -> sqlalchemy.URL:
    """Return SQLAlchemy's URL of the test's database, with no more rights than submit needs."""
    parts = {name: str(value) for name, value in conninfo_to_dict(writer).items()}
    return sqlalchemy.URL.create("postgresql+psycopg", query=parts)


@pytest.fixture
def engine(url: sqlalchemy.URL) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(url)
    yield engine
    engine.dispose()


def sent(lanes: AwsStandIn) -> list[str]:
    return [message["job_id"] for message in lanes.take()]


# ---- psycopg


def test_job_is_stored_with_the_callers_commit(client: Client, dsn: str, db: psycopg.Connection) -> None:
    with psycopg.connect(dsn) as connection:
        [submitted] = client.submit(connection, [JOB])
        assert count(db, JOBS) == 0
    found = db.execute("SELECT id::text, payload, status FROM signalbox.jobs").fetchall()
    assert found == [(submitted.id, {"number": 7}, "queued")]


@pytest.mark.parametrize("number", [1, 2, 300])
def test_rollback_takes_the_jobs_back(client: Client, dsn: str, db: psycopg.Connection, number: int) -> None:
    with psycopg.connect(dsn) as connection:
        client.submit(connection, [JOB] * number)  # the first that the transaction does
        connection.rollback()
    assert count(db, JOBS) == 0


@pytest.mark.parametrize("rows", [dict_row, namedtuple_row, class_row(dict)], ids=lambda rows: rows.__name__)
def test_rows_of_the_connection_may_be_of_any_kind(client: Client, dsn: str, rows: Any) -> None:
    with psycopg.connect(dsn, row_factory=rows) as connection:
        first, second = client.submit(connection, [NewJob("do_nothing", idempotency_key="k")] * 2)
    assert (first.id, second.created) == (second.id, False)


def test_jobs_are_sent_when_the_caller_says_so(client: Client, lanes: AwsStandIn, dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        submitted = client.submit(connection, [JOB])
    assert sent(lanes) == []
    assert client.send(submitted) == 1
    assert sent(lanes) == [submitted[0].id]


def test_each_statement_that_commits_by_itself_is_sent(
    client: Client, lanes: AwsStandIn, db: psycopg.Connection
) -> None:
    submitted = client.submit(db, [JOB, JOB])
    assert sent(lanes) == [job.id for job in submitted]


def test_transaction_in_autocommit_is_the_callers(client: Client, lanes: AwsStandIn, db: psycopg.Connection) -> None:
    with db.transaction() as transaction:
        client.submit(db, [JOB, JOB])
        raise psycopg.Rollback(transaction)
    assert count(db, JOBS) == 0
    assert sent(lanes) == []


def test_job_that_waits_is_not_sent(client: Client, lanes: AwsStandIn, db: psycopg.Connection) -> None:
    [parent] = client.submit(db, [JOB])
    [child] = client.submit(db, [NewJob("do_nothing", depends_on=[Dependency(parent.id)])])
    assert child.status == "pending"
    assert sent(lanes) == [parent.id]


def test_member_of_the_writers_may_submit(client: Client, writer: str, db: psycopg.Connection) -> None:
    with psycopg.connect(writer) as connection:
        [first] = client.submit(connection, [NewJob("do_nothing", group="g", idempotency_key="k")])
    with psycopg.connect(writer) as connection:
        client.submit(connection, [NewJob("do_nothing", group="g", depends_on=[Dependency(first.id)])] * 300)
    assert count(db, JOBS) == 301


def test_refused_jobs_leave_the_callers_transaction_whole(client: Client, dsn: str, db: psycopg.Connection) -> None:
    with psycopg.connect(dsn) as connection:
        client.submit(connection, [JOB])
        with pytest.raises(JobRefused, match="field 'nmuber' is not known"):
            client.submit(connection, [JOB, NewJob("do_nothing", {"nmuber": 7})])
    assert count(db, JOBS) == 1


# ---- without AWS


def test_without_a_stack_nothing_is_sent(lanes: AwsStandIn, db: psycopg.Connection) -> None:
    client = Client(packs=[PACK])
    assert client.send(client.submit(db, [JOB])) == 0
    assert sent(lanes) == []


def test_stack_is_read_from_the_environment(
    lanes: AwsStandIn, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGNALBOX_STACK", "signalbox")
    submitted = Client(packs=[PACK]).submit(db, [JOB])
    assert sent(lanes) == [submitted[0].id]


@pytest.mark.parametrize("variable", ["AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION"])
def test_want_of_aws_is_logged_and_not_raised(
    client: Client,
    db: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    variable: str,
) -> None:
    monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client.submit(db, [JOB])
    assert [record.message for record in caplog.records] == ["messages.not_sent"]


def test_lane_that_is_away_is_logged(
    client: Client, lanes: AwsStandIn, db: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    lanes.away.add("normal")
    client.submit(db, [JOB])
    assert [record.message for record in caplog.records] == ["messages.not_sent"]


def test_next_run_of_dispatch_jobs_sends_what_is_not_sent(
    stage: Stage, lanes: AwsStandIn, db: psycopg.Connection
) -> None:
    [submitted] = Client(packs=[PACK]).submit(db, [JOB])
    assert stage.run("dispatch_jobs", at=datetime.now(UTC))["items"] == 0
    assert stage.run("dispatch_jobs", at=datetime.now(UTC) + timedelta(minutes=1))["items"] == 1
    assert sent(lanes) == [submitted.id]


# ---- job types


def test_packs_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pack = tmp_path / "shop" / "pack.py"
    pack.parent.mkdir()
    pack.write_text("from tests.database.jobs.test_client import PACK\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SIGNALBOX_PACKS", "shop")
    assert {"deliver_webhook", "do_nothing"} <= set(Client().job_types.by_name)


def test_type_of_no_pack_is_refused(db: psycopg.Connection) -> None:
    with pytest.raises(JobTypeUnknown, match="'deliver_webhok' is not registered; did you mean 'deliver_webhook'"):
        Client().submit(db, [NewJob("deliver_webhok")])


# ---- SQLAlchemy


def test_session_sends_after_its_commit(client: Client, lanes: AwsStandIn, engine: sqlalchemy.Engine) -> None:
    with Session(engine) as session:
        first, second = client.submit(session, [JOB])[0], client.submit(session, [JOB])[0]
        assert sent(lanes) == []
        session.commit()
        assert sent(lanes) == [first.id, second.id]
        [third] = client.submit(session, [JOB])
        session.commit()
        assert sent(lanes) == [third.id]


@pytest.mark.parametrize("end", [Session.rollback, Session.close], ids=["rollback", "close"])
def test_session_that_is_not_committed_sends_nothing(
    client: Client,
    lanes: AwsStandIn,
    engine: sqlalchemy.Engine,
    db: psycopg.Connection,
    end: Callable[[Session], None],
) -> None:
    with Session(engine) as session:
        client.submit(session, [JOB, JOB])
        end(session)
        session.execute(sqlalchemy.text("SELECT 1"))
        session.commit()
    assert count(db, JOBS) == 0
    assert sent(lanes) == []


def test_savepoint_takes_back_its_own_jobs_alone(
    client: Client, lanes: AwsStandIn, engine: sqlalchemy.Engine, db: psycopg.Connection
) -> None:
    with Session(engine) as session, session.begin():
        [outer] = client.submit(session, [JOB])
        with session.begin_nested():
            [released] = client.submit(session, [JOB])
        with session.begin_nested() as savepoint:
            with session.begin_nested():
                client.submit(session, [JOB])
            savepoint.rollback()
        assert sent(lanes) == []
    assert sent(lanes) == [outer.id, released.id]
    assert count(db, JOBS) == 2


def test_scoped_session_is_a_session(client: Client, lanes: AwsStandIn, engine: sqlalchemy.Engine) -> None:
    session = scoped_session(sessionmaker(engine))
    [submitted] = client.submit(session, [JOB])
    session.commit()
    session.remove()
    assert sent(lanes) == [submitted.id]


def test_connection_of_sqlalchemy_is_sent_by_the_caller(
    client: Client, lanes: AwsStandIn, engine: sqlalchemy.Engine, db: psycopg.Connection
) -> None:
    with engine.begin() as connection:
        submitted = client.submit(connection, [JOB, JOB])
        assert count(db, JOBS) == 0
    assert count(db, JOBS) == 2
    assert sent(lanes) == []
    assert client.send(submitted) == 2


# ---- asyncio


def run(dsn: str, act: Callable[[psycopg.AsyncConnection], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def connect_and_act() -> None:
        async with await psycopg.AsyncConnection.connect(dsn, **options) as connection:
            await act(connection)

    asyncio.run(connect_and_act())


@pytest.mark.parametrize("number", [1, 2, 300])
def test_coroutine_submits_in_its_own_transaction(
    async_client: AsyncClient, dsn: str, db: psycopg.Connection, number: int
) -> None:
    async def act(connection: psycopg.AsyncConnection) -> None:
        await async_client.submit(connection, [JOB] * number)
        await connection.rollback()
        await async_client.submit(connection, [JOB] * number)
        assert count(db, JOBS) == 0

    run(dsn, act, row_factory=dict_row)
    assert count(db, JOBS) == number


def test_coroutine_in_autocommit_sends(
    async_client: AsyncClient, lanes: AwsStandIn, dsn: str, db: psycopg.Connection
) -> None:
    async def act(connection: psycopg.AsyncConnection) -> None:
        await async_client.submit(connection, [JOB])
        async with connection.transaction():
            submitted = await async_client.submit(connection, [JOB, JOB])
        assert await async_client.send(submitted) == 2

    run(dsn, act, autocommit=True)
    assert count(db, JOBS) == len(sent(lanes)) == 3


def test_refusal_in_a_coroutine_takes_back_what_came_before(
    async_client: AsyncClient, dsn: str, db: psycopg.Connection
) -> None:
    async def act(connection: psycopg.AsyncConnection) -> None:
        with pytest.raises(JobRefused, match="which does not exist"):
            await async_client.submit(connection, [JOB, NewJob("do_nothing", depends_on=[NOBODY])])

    run(dsn, act)
    assert count(db, JOBS) == 0


NOBODY = Dependency("00000000-0000-4000-8000-000000000000")


def test_cancelled_coroutine_gets_its_connection_back_at_rest(
    async_client: AsyncClient, dsn: str, db: psycopg.Connection
) -> None:
    async def act(connection: psycopg.AsyncConnection) -> None:
        with psycopg.connect(dsn) as blocking:
            blocking.execute("LOCK TABLE signalbox.jobs")
            submitting = asyncio.create_task(async_client.submit(connection, [JOB]))
            await asyncio.to_thread(wait_until_blocked, db)
            submitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await submitting
        assert connection.info.transaction_status == TransactionStatus.INTRANS
        await connection.rollback()

    run(dsn, act)
    assert count(db, JOBS) == 0


def test_async_session_sends_after_its_commit(
    async_client: AsyncClient, lanes: AwsStandIn, url: sqlalchemy.URL, db: psycopg.Connection
) -> None:
    async def act() -> None:
        engine = create_async_engine(url)
        async with AsyncSession(engine) as session:
            await async_client.submit(session, [JOB, JOB])
            await session.rollback()
            await async_client.submit(session, [JOB])
            assert sent(lanes) == []
            await session.commit()
        async with engine.begin() as connection:
            await async_client.submit(connection, [JOB])
        await engine.dispose()

    asyncio.run(act())  # which waits for the threads that send
    assert (len(sent(lanes)), count(db, JOBS)) == (1, 2)


# ---- what is refused


class OfAnotherDriver:
    """Look like another driver's connection."""


def other(name: str) -> Any:
    module, _, kind = name.rpartition(".")
    return type(kind, (OfAnotherDriver,), {"__module__": module})()


@pytest.mark.parametrize("name", ["psycopg2.extensions.connection", "asyncpg.connection.Connection"])
def test_other_drivers_are_refused_by_name(client: Client, name: str) -> None:
    with pytest.raises(DriverRefused, match=rf"this is a {name}.*SELECT signalbox\.submit_job"):
        client.submit(other(name), [JOB])


def test_sqlalchemy_on_another_driver_is_refused(client: Client) -> None:
    refused = pytest.raises(DriverRefused, match=r"this is a sqlite3.Connection")
    with Session(sqlalchemy.create_engine("sqlite://")) as session, refused:
        client.submit(session, [JOB])


def test_each_client_names_the_other(client: Client, async_client: AsyncClient, dsn: str, url: sqlalchemy.URL) -> None:
    for_functions: list[Any] = [psycopg.connect(dsn), Session(sqlalchemy.create_engine(url))]

    async def act(connection: psycopg.AsyncConnection) -> None:
        for_coroutines: list[Any] = [connection, AsyncSession(create_async_engine(url))]
        for one in for_coroutines:
            with pytest.raises(DriverRefused, match=r"is for signalbox\.AsyncClient"):
                client.submit(one, [JOB])
        for one in for_functions:
            with pytest.raises(DriverRefused, match=r"is for signalbox\.Client"):
                await async_client.submit(one, [JOB])
            one.close()

    run(dsn, act)
