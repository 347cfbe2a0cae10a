"""archive_watchpoints archives, announces and notes what has passed, together or not at all."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from forecasts.tasks.archive_watchpoints import SQL as QUERIES
from forecasts.tasks.archive_watchpoints import START
from signalbox.errors import Unavailable
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import count, select
from signalbox.testing.stage import NOON, Stage
from tests.support.at_once import two_at_once
from tests.support.aws import Aws
from tests.support.forecast_rows import organization, watchpoint
from tests.support.lock_waits import wait_for_no_lock
from tests.support.lost_session import lose_session

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
PASSED = NOON - 2 * HOUR


def archived(db: psycopg.Connection) -> dict[UUID, tuple[Any, ...]]:
    columns = "id, archived_at, archived_reason"
    rows = db.execute(f"SELECT {columns} FROM forecasts.watchpoints WHERE status = 'archived'".encode()).fetchall()
    return {row[0]: row[1:] for row in rows}


def audited(db: psycopg.Connection) -> list[dict[str, Any]]:
    return select(db, "SELECT * FROM forecasts.audit_logs ORDER BY id")


def many(db: psycopg.Connection, number: int, end: datetime = PASSED) -> None:
    """Add this many passed watchpoints, all of events that ended at the same instant."""
    db.execute(
        "INSERT INTO forecasts.watchpoints (organization_id, name, tile_id, time_window_end) "
        "SELECT %s, 'a place', 'tile-' || n, %s FROM generate_series(1, %s) AS n",
        (organization(db), end, number),
    )


def test_watchpoint_whose_event_has_passed_is_archived_published_and_audited(
    stage: Stage, db: psycopg.Connection, aws: Aws
) -> None:
    owner = organization(db)
    passed = watchpoint(db, owner, time_window_end=PASSED, tile_id="tile-7")
    watchpoint(db, owner, time_window_end=NOON + HOUR)
    watchpoint(db, owner)  # watches without an end
    watchpoint(db, owner, time_window_end=PASSED, status="paused", paused_at=PASSED)
    before = watchpoint(db, owner, time_window_end=PASSED, status="archived", archived_at=PASSED)

    assert stage.run("archive_watchpoints")["items"] == 1

    assert archived(db) == {passed: (NOON, "event_passed"), before: (PASSED, None)}
    assert aws.drain(aws.evaluations) == [
        {"version": 1, "action": "generate_summary", "watchpoint_id": str(passed), "tile_id": "tile-7"}
    ]
    [record] = audited(db)
    record.pop("id")
    assert record == {
        "organization_id": owner,
        "actor": "signalbox",
        "action": "watchpoint.archived",
        "entity_type": "watchpoint",
        "entity_id": str(passed),
        "detail": {"reason": "event_passed"},
        "created_at": NOON,
    }


def test_nothing_is_published_when_no_event_has_passed(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    watchpoint(db, organization(db), time_window_end=NOON)
    answer = stage.run("archive_watchpoints")
    assert (answer["status"], answer["items"], queue.calls) == ("succeeded", 0, 0)


def test_event_has_passed_more_than_an_hour_after_its_end(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    owner = organization(db)
    over = watchpoint(db, owner, time_window_end=NOON - HOUR - SECOND)
    watchpoint(db, owner, time_window_end=NOON - HOUR)
    watchpoint(db, owner, time_window_end=NOON - HOUR + SECOND)
    stage.run("archive_watchpoints")
    assert list(archived(db)) == [over]


@pytest.mark.parametrize("tile_id", ["", "tile 7", "Zürich/7", "x" * 300])
def test_an_odd_tile_holds_up_nobody(stage: Stage, db: psycopg.Connection, aws: Aws, tile_id: str) -> None:
    """As a message's group it would have its whole call refused, in every run."""
    owner = organization(db)
    for tile in ("tile-1", tile_id, "tile-2"):
        watchpoint(db, owner, time_window_end=PASSED, tile_id=tile)
    assert stage.run("archive_watchpoints")["items"] == 3
    assert {body["tile_id"] for body in aws.drain(aws.evaluations)} == {"tile-1", tile_id, "tile-2"}


def test_refusing_queue_leaves_everything_unchanged_for_next_run(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    many(db, 25)
    queue.takes = 10
    with pytest.raises(Unavailable, match="does not accept messages"):
        stage.run("archive_watchpoints")
    assert (archived(db), audited(db)) == ({}, [])

    queue.takes = None
    assert stage.run("archive_watchpoints")["items"] == 25
    told = {body["watchpoint_id"] for body in queue.bodies}
    assert told == {str(id_) for id_ in archived(db)} == {row["entity_id"] for row in audited(db)}


def test_a_message_refused_for_a_moment_is_sent_again(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    many(db, 12)
    queue.fails_once = {'"tile-3"', '"tile-11"'}
    assert stage.run("archive_watchpoints")["items"] == 12
    assert len(queue.bodies) == len({body["watchpoint_id"] for body in queue.bodies}) == 12


def test_a_crash_after_the_messages_and_before_the_commit_sends_them_again(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn, dsn: str
) -> None:
    many(db, 5)

    def crash() -> None:
        queue.taken = lambda: None
        lose_session(dsn)

    queue.taken = crash
    with pytest.raises(psycopg.OperationalError):
        stage.run("archive_watchpoints")
    assert (archived(db), audited(db), len(queue.bodies)) == ({}, [], 5)

    assert stage.run("archive_watchpoints")["items"] == 5
    assert (len(archived(db)), len(audited(db)), len(queue.bodies)) == (5, 5, 10)
    assert {body["watchpoint_id"] for body in queue.bodies} == {str(id_) for id_ in archived(db)}


def test_two_runs_at_once_archive_each_watchpoint_once(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    many(db, 450)
    answers = two_at_once(stage, "archive_watchpoints", NOON, NOON - timedelta(minutes=15))
    assert [answer["status"] for answer in answers] == ["succeeded"] * 2
    assert sum(answer["items"] for answer in answers) == 450
    assert (len(archived(db)), len(audited(db)), len(queue.bodies)) == (450, 450, 450)
    assert len({body["watchpoint_id"] for body in queue.bodies}) == 450


def test_one_that_its_owner_is_changing_waits_for_the_next_run(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn, dsn: str
) -> None:
    owner = organization(db)
    busy = watchpoint(db, owner, time_window_end=PASSED)
    watchpoint(db, owner, time_window_end=PASSED)
    wait_for_no_lock(db)
    with psycopg.connect(dsn) as other:
        other.execute("UPDATE forecasts.watchpoints SET name = 'renamed' WHERE id = %s", (busy,))
        assert stage.run("archive_watchpoints")["items"] == 1
    assert stage.run("archive_watchpoints", NOON + timedelta(minutes=15))["items"] == 1
    assert busy in archived(db)


def test_a_past_run_archives_what_had_passed_by_then(stage: Stage, db: psycopg.Connection, queue: AwsStandIn) -> None:
    owner, then = organization(db), NOON - timedelta(days=7)
    early = watchpoint(db, owner, time_window_end=then - 2 * HOUR)
    watchpoint(db, owner, time_window_end=PASSED)
    stage.run("archive_watchpoints", reference_time=then.isoformat())
    assert archived(db) == {early: (then, "event_passed")}
    assert [row["created_at"] for row in audited(db)] == [then]


def test_a_run_goes_on_in_a_continuation_when_its_budget_ends(
    stage: Stage, db: psycopg.Connection, queue: AwsStandIn
) -> None:
    many(db, 250)
    first = stage.run("archive_watchpoints", seconds=10.0)  # only the margin: no time for a page
    assert (first["items"], first["more"]) == (0, True)
    assert [answer["items"] for answer in stage.deliver()] == [250]
    assert len({body["watchpoint_id"] for body in queue.bodies}) == len(archived(db)) == 250


def test_its_page_is_found_by_its_index(db: psycopg.Connection, stage: Stage) -> None:
    many(db, 5000, NOON + HOUR)
    many(db, 50)
    db.execute("ANALYZE forecasts.watchpoints")
    values = {"now": NOON, "before": NOON - HOUR, "after_end": START[0], "after_id": START[1], "size": 100}
    plan = "\n".join(row[0] for row in db.execute("EXPLAIN " + QUERIES["archive"], values))
    assert "idx_watchpoints_archive_candidates" in plan
    assert "Seq Scan" not in plan
    assert count(db, "forecasts.watchpoints WHERE status = 'archived'") == 0
