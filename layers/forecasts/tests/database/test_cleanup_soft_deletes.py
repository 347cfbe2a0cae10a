"""cleanup_soft_deletes deletes an organisation for good with all its rows, leaves a trace, and affects no other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from signalbox.testing.rows import count, runs_of
from signalbox.testing.stage import NOON, Stage
from tests.support import forecast_rows as rows
from tests.support.at_once import two_at_once

TASK = "cleanup_soft_deletes"
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
LONG_AGO = NOON - 40 * DAY
BELONGINGS = (
    "watchpoints",
    "notifications",
    "notification_deliveries",
    "idempotency_keys",
    "usage_history",
    "rate_limits",
    "invites",
)


def organizations(db: psycopg.Connection) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM forecasts.organizations ORDER BY name").fetchall()]


def furnished(db: psycopg.Connection, name: str, times: int = 1, **columns: Any) -> UUID:
    """Add an organisation with this many of everything that an organisation may have."""
    made = rows.organization(db, name=name, **columns)
    statement = """
        WITH n AS MATERIALIZED (SELECT generate_series(1, %(times)s) AS n), w AS (
            INSERT INTO forecasts.watchpoints (organization_id, name, tile_id) SELECT %(id)s, 'a', 'b' FROM n
        ), m AS (
            INSERT INTO forecasts.notifications (organization_id, payload) SELECT %(id)s, '{}' FROM n RETURNING id
        ), d AS (
            INSERT INTO forecasts.notification_deliveries (notification_id, channel) SELECT id, 'email' FROM m
        ), k AS (
            INSERT INTO forecasts.idempotency_keys (key, organization_id, expires_at)
            SELECT %(id)s::text || n, %(id)s, 'infinity' FROM n
        ), u AS (
            INSERT INTO forecasts.usage_history (organization_id, date, source) SELECT %(id)s, '2026-01-01', n FROM n
        ), r AS (
            INSERT INTO forecasts.rate_limits (organization_id, source, period_start, period_end)
            SELECT %(id)s, n, '2026-01-01', '2026-01-02' FROM n
        )
        INSERT INTO forecasts.invites (organization_id, email, expires_at) SELECT %(id)s, 'c', 'infinity' FROM n
    """
    db.execute(statement, {"id": made, "times": times})
    return made


def left(db: psycopg.Connection) -> set[int]:
    return {count(db, f"forecasts.{table}") for table in BELONGINGS}


def purged(db: psycopg.Connection) -> list[str]:
    statement = "SELECT entity_id FROM forecasts.audit_logs WHERE action = 'organization.purged' ORDER BY id"
    return [entity for (entity,) in db.execute(statement).fetchall()]


def kept(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.reason for record in caplog.records if record.message == "organization.kept"]  # type: ignore[attr-defined]


def test_an_organisation_goes_with_all_its_own_and_leaves_a_trace(stage: Stage, db: psycopg.Connection) -> None:
    gone = furnished(db, "gone", times=3, deleted_at=LONG_AGO)
    furnished(db, "stays", times=2)
    assert stage.run(TASK)["items"] == 1
    assert organizations(db) == ["stays"]
    assert left(db) == {2}
    columns = "organization_id, actor, entity_type, entity_id, detail, created_at"
    trace = db.execute(f"SELECT {columns} FROM forecasts.audit_logs".encode())
    deleted_at = LONG_AGO.isoformat()
    assert trace.fetchall() == [(gone, "signalbox", "organization", str(gone), {"deleted_at": deleted_at}, NOON)]


def test_with_nobody_to_delete_nothing_happens(stage: Stage, db: psycopg.Connection) -> None:
    furnished(db, "stays")
    assert stage.run(TASK)["items"] == 0
    assert (organizations(db), left(db), purged(db)) == (["stays"], {1}, [])


def test_a_month_after_the_deletion_counts_to_the_second(stage: Stage, db: psycopg.Connection) -> None:
    for name, age in [("longer", 30 * DAY + SECOND), ("a month", 30 * DAY), ("shorter", 30 * DAY - SECOND)]:
        furnished(db, name, deleted_at=NOON - age)
    assert stage.run(TASK)["items"] == 1
    assert organizations(db) == ["a month", "shorter"]


def test_run_deletes_fifty_longest_deleted_first_and_the_next_continues(stage: Stage, db: psycopg.Connection) -> None:
    plan = rows.plan(db)
    for number in range(60):
        rows.organization(db, name=f"{number:03}", plan=plan, deleted_at=LONG_AGO - number * DAY)
    for number in range(200):
        rows.organization(db, name=f"stays {number}", plan=plan)
    answer = stage.run(TASK)
    assert (answer["items"], answer["reason"]) == (50, "a run deletes at most 50; the next run continues")
    assert "more" not in answer
    assert organizations(db)[:10] == [f"{number:03}" for number in range(10)]
    answer = stage.run(TASK, NOON + DAY)
    assert (answer["items"], "reason" in answer) == (10, False)
    assert len(purged(db)) == 60


def test_exactly_fifty_leave_nothing_to_say(stage: Stage, db: psycopg.Connection) -> None:
    plan = rows.plan(db)
    for number in range(250):
        rows.organization(db, plan=plan, deleted_at=LONG_AGO if number < 50 else None)
    answer = stage.run(TASK)
    assert (answer["items"], "reason" in answer) == (50, False)


def test_a_continuation_has_what_the_run_before_it_left_of_the_fifty(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORECASTS_CLEANUP_BATCH", "3")
    for _ in range(5):
        rows.organization(db, deleted_at=LONG_AGO)
    db.execute(
        "INSERT INTO signalbox.job_history (job_type, slot, trigger, status, items, more, worker_id, started_at, "
        "finished_at) VALUES (%s, %s, 'schedule', 'succeeded', 2, true, 'tests', now(), now())",
        (TASK, NOON.replace(hour=2)),
    )
    assert stage.run(TASK)["items"] == 1
    assert stage.run(TASK, NOON + DAY)["items"] == 3


def test_an_organisation_too_large_for_one_run_goes_on_in_a_continuation(stage: Stage, db: psycopg.Connection) -> None:
    furnished(db, "gone", times=2500, deleted_at=LONG_AGO)
    assert stage.run(TASK, seconds=10)["more"] is True  # only the margin
    assert organizations(db) == ["gone"]
    assert [answer["items"] for answer in stage.deliver()] == [1]
    assert left(db) == {0}


def test_what_a_large_one_has_goes_in_batches_before_it(stage: Stage, db: psycopg.Connection) -> None:
    furnished(db, "gone", times=2500, deleted_at=LONG_AGO)
    db.execute(
        "CREATE TABLE batches (name text, deleted bigint); "
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN "
        "INSERT INTO batches SELECT TG_TABLE_NAME, count(*) FROM gone; RETURN NULL; END $$"
    )
    for table in ("notifications", "watchpoints", "organizations"):
        trigger = f"note AFTER DELETE ON forecasts.{table} REFERENCING OLD TABLE AS gone EXECUTE FUNCTION note()"
        db.execute(f"CREATE TRIGGER {trigger}".encode())
    stage.run(TASK)
    batches = db.execute("SELECT name, deleted FROM batches WHERE deleted > 0").fetchall()
    assert batches == [(name, size) for name in ("notifications", "watchpoints") for size in (1000, 1000, 500)] + [
        ("organizations", 1)
    ]


def test_one_that_something_else_refers_to_is_reported_and_keeps_no_other(
    stage: Stage, db: psycopg.Connection, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    referred = furnished(db, "referred", deleted_at=LONG_AGO - DAY)
    furnished(db, "gone", deleted_at=LONG_AGO)
    db.execute("CREATE TABLE contracts (organization_id uuid REFERENCES forecasts.organizations)")
    db.execute("INSERT INTO contracts VALUES (%s)", (referred,))
    answer = stage.run(TASK)
    assert (answer["items"], answer["reason"]) == (1, "1 were not deleted; the log says why, for each")
    assert organizations(db) == ["referred"]
    assert "contracts" in kept(caplog)[0]
    assert '"OrganizationsKept":[1.0]' in capsys.readouterr().out


def test_one_that_somebody_holds_is_left_and_not_waited_for(
    stage: Stage, dsn: str, db: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    held = furnished(db, "held", deleted_at=LONG_AGO - DAY)
    furnished(db, "gone", deleted_at=LONG_AGO)
    with psycopg.connect(dsn) as holder:
        holder.execute("SELECT FROM forecasts.watchpoints WHERE organization_id = %s FOR UPDATE", (held,))
        assert stage.run(TASK)["items"] == 1
    assert (organizations(db), len(kept(caplog))) == (["held"], 1)
    assert stage.run(TASK, force=True)["items"] == 1


def test_one_that_is_being_restored_keeps_all_it_has(stage: Stage, dsn: str, db: psycopg.Connection) -> None:
    furnished(db, "restored", deleted_at=LONG_AGO)
    with psycopg.connect(dsn) as restoring:
        restoring.execute("UPDATE forecasts.organizations SET deleted_at = NULL")
        assert stage.run(TASK)["items"] == 0
    assert stage.run(TASK, force=True)["items"] == 0
    assert (organizations(db), left(db), purged(db)) == (["restored"], {1}, [])


def test_crash_before_last_half_leaves_no_trace_of_undone_work(stage: Stage, db: psycopg.Connection) -> None:
    gone = furnished(db, "gone", times=3, deleted_at=LONG_AGO)
    db.execute("ALTER TABLE forecasts.audit_logs RENAME TO audit_logs_away")
    with pytest.raises(psycopg.errors.UndefinedTable):
        stage.run(TASK)
    assert (organizations(db), count(db, "forecasts.notifications")) == (["gone"], 0)
    db.execute("ALTER TABLE forecasts.audit_logs_away RENAME TO audit_logs")
    assert stage.run(TASK)["items"] == 1
    assert (organizations(db), purged(db)) == ([], [str(gone)])
    assert [row["status"] for row in runs_of(db, TASK)] == ["failed", "succeeded"]


def test_two_runs_at_once_delete_each_once(stage: Stage, db: psycopg.Connection) -> None:
    for number in range(8):
        furnished(db, f"{number}", times=300, deleted_at=LONG_AGO - 10 * DAY)
    answers = two_at_once(stage, TASK, NOON - DAY, NOON)
    assert [answer["status"] for answer in answers] == ["succeeded"] * 2
    third = stage.run(TASK, NOON + DAY)  # rows that one left to the other in the meantime
    assert sum(answer["items"] for answer in [*answers, third]) == 8
    assert (left(db), len(purged(db)), len(set(purged(db)))) == ({0}, 8, 8)


def test_a_run_for_a_past_day_deletes_what_that_day_would_have(stage: Stage, db: psycopg.Connection) -> None:
    furnished(db, "then", deleted_at=NOON - 33 * DAY)
    furnished(db, "since", deleted_at=NOON - 31 * DAY)
    stage.run(TASK, reference_time=(NOON - 2 * DAY).isoformat())
    assert organizations(db) == ["since"]
