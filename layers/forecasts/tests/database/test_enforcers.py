"""enforce_payment_failure and enforce_overage pause watchpoints after the days of grace, and nothing resumes them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from signalbox.testing.rows import select
from signalbox.testing.stage import NOON, Stage
from tests.support.at_once import two_at_once
from tests.support.forecast_rows import THEN, organization, plan, watchpoint

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
# task, the column that starts its days of grace, how many, and its reason
PAYMENT = ("enforce_payment_failure", "payment_failed_at", 7 * DAY, "billing_delinquency")
OVERAGE = ("enforce_overage", "overage_started_at", 14 * DAY, "plan_overage")
both = pytest.mark.parametrize(("task", "column", "grace", "reason"), [PAYMENT, OVERAGE])


@pytest.fixture(autouse=True)
def _no_room(db: psycopg.Connection) -> None:
    """Make a plan without any watchpoints, so that all that an organisation has is beyond it."""
    plan(db, "none", watchpoints=0)
    plan(db, "three", watchpoints=3)


def paused(db: psycopg.Connection) -> dict[UUID, tuple[Any, ...]]:
    query = "SELECT id, paused_at, paused_reason FROM forecasts.watchpoints WHERE status = 'paused'"
    return {row[0]: row[1:] for row in db.execute(query).fetchall()}


def audited(db: psycopg.Connection) -> list[dict[str, Any]]:
    return select(db, "SELECT * FROM forecasts.audit_logs ORDER BY id")


def watchpoints(db: psycopg.Connection, owner: UUID, number: int) -> list[UUID]:
    """Add watchpoints, from the oldest to the newest."""
    return [watchpoint(db, owner, created_at=THEN + n * DAY) for n in range(number)]


@both
def test_what_is_active_is_paused_with_its_reason_and_its_record(
    stage: Stage, db: psycopg.Connection, task: str, column: str, grace: timedelta, reason: str
) -> None:
    owner = organization(db, plan="none", **{column: NOON - grace - DAY})
    active = watchpoint(db, owner)
    before = watchpoint(db, owner, status="paused", paused_at=THEN, paused_reason="by its owner")
    watchpoint(db, owner, status="archived", archived_at=THEN)
    watchpoint(db, organization(db, plan="none"))

    assert stage.run(task)["items"] == 1

    assert paused(db) == {active: (NOON, reason), before: (THEN, "by its owner")}
    [record] = audited(db)
    record.pop("id")
    assert record == {
        "organization_id": owner,
        "actor": "signalbox",
        "action": "watchpoint.paused",
        "entity_type": "watchpoint",
        "entity_id": str(active),
        "detail": {"reason": reason},
        "created_at": NOON,
    }


@both
def test_grace_ends_to_the_second(
    stage: Stage, db: psycopg.Connection, task: str, column: str, grace: timedelta, reason: str
) -> None:
    over, at, within = (
        watchpoint(db, organization(db, plan="none", **{column: NOON - grace + n * SECOND})) for n in (-1, 0, 1)
    )
    stage.run(task)
    assert set(paused(db)) == {over, at}
    assert within not in paused(db)


@both
def test_the_days_of_grace_are_a_setting(
    stage: Stage,
    db: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    column: str,
    grace: timedelta,
    reason: str,
) -> None:
    monkeypatch.setenv(f"FORECASTS_{column.split('_', maxsplit=1)[0].upper()}_GRACE_DAYS", "1")
    one = watchpoint(db, organization(db, plan="none", **{column: NOON - DAY}))
    stage.run(task)
    assert set(paused(db)) == {one}


@both
def test_an_organisation_that_was_handled_is_left_alone(
    stage: Stage, db: psycopg.Connection, task: str, column: str, grace: timedelta, reason: str
) -> None:
    watchpoint(db, organization(db, plan="none", **{column: NOON - 2 * grace}))
    stage.run(task)
    answer = stage.run(task, NOON + DAY)
    assert (answer["status"], answer["items"], len(audited(db))) == ("succeeded", 0, 1)


@both
def test_nobody_but_the_owner_resumes_what_was_paused(
    stage: Stage, db: psycopg.Connection, task: str, column: str, grace: timedelta, reason: str
) -> None:
    one = watchpoint(db, organization(db, plan="none", **{column: NOON - 2 * grace}))
    stage.run(task)
    db.execute("UPDATE forecasts.organizations SET payment_failed_at = NULL, overage_started_at = NULL, plan = 'three'")
    for other in ("enforce_payment_failure", "enforce_overage", "aggregate_usage"):
        stage.run(other, NOON + DAY)
    assert paused(db) == {one: (NOON, reason)}


@both
def test_a_deleted_organisation_is_left_to_its_deletion(
    stage: Stage, db: psycopg.Connection, task: str, column: str, grace: timedelta, reason: str
) -> None:
    watchpoint(db, organization(db, plan="none", deleted_at=NOON - DAY, **{column: NOON - 2 * grace}))
    assert stage.run(task)["items"] == 0


@both
def test_two_runs_at_once_pause_and_note_each_watchpoint_once(
    stage: Stage, db: psycopg.Connection, task: str, column: str, grace: timedelta, reason: str
) -> None:
    owner = organization(db, plan="three", **{column: NOON - 2 * grace})
    db.execute(
        "INSERT INTO forecasts.watchpoints (organization_id, name, tile_id) "
        "SELECT %s, 'a place', 'tile-1' FROM generate_series(1, 1200)",
        (owner,),
    )
    answers = two_at_once(stage, task, NOON, NOON + DAY)
    expected = 1200 if task == "enforce_payment_failure" else 1197
    assert [answer["status"] for answer in answers] == ["succeeded"] * 2
    assert sum(answer["items"] for answer in answers) == len(paused(db)) == len(audited(db)) == expected


@both
def test_a_row_that_fails_fails_its_batch_whole(
    stage: Stage, db: psycopg.Connection, task: str, column: str, grace: timedelta, reason: str
) -> None:
    """No watchpoint is paused without its record: if the record can't be written, nothing is paused."""
    one = watchpoint(db, organization(db, plan="none", **{column: NOON - 2 * grace}))
    db.execute("ALTER TABLE forecasts.audit_logs ADD CONSTRAINT trouble CHECK (action <> 'watchpoint.paused')")
    with pytest.raises(psycopg.errors.CheckViolation):
        stage.run(task)
    assert paused(db) == {}
    db.execute("ALTER TABLE forecasts.audit_logs DROP CONSTRAINT trouble")
    stage.run(task)
    assert set(paused(db)) == {one} == {UUID(record["entity_id"]) for record in audited(db)}


@both
def test_a_past_run_pauses_those_whose_grace_had_ended_then(
    stage: Stage, db: psycopg.Connection, task: str, column: str, grace: timedelta, reason: str
) -> None:
    then = NOON - 30 * DAY
    one = watchpoint(db, organization(db, plan="none", **{column: then - grace}))
    watchpoint(db, organization(db, plan="none", **{column: then - grace + SECOND}))
    stage.run(task, reference_time=then.isoformat())
    assert paused(db) == {one: (then, reason)}


@both
def test_a_run_goes_on_in_a_continuation_when_its_budget_ends(
    stage: Stage, db: psycopg.Connection, task: str, column: str, grace: timedelta, reason: str
) -> None:
    watchpoint(db, organization(db, plan="none", **{column: NOON - 2 * grace}))
    assert stage.run(task, seconds=10.0)["more"] is True
    assert [answer["items"] for answer in stage.deliver()] == [1]


def test_a_failed_payment_pauses_all_that_is_active(stage: Stage, db: psycopg.Connection) -> None:
    owner = organization(db, plan="three", payment_failed_at=NOON - 8 * DAY)
    made = watchpoints(db, owner, 5)
    stage.run("enforce_payment_failure")
    assert set(paused(db)) == set(made)


@pytest.mark.parametrize(("active", "beyond"), [(2, 0), (3, 0), (4, 1), (7, 4)])
def test_an_overage_pauses_the_newest_beyond_the_plan(
    stage: Stage, db: psycopg.Connection, active: int, beyond: int
) -> None:
    owner = organization(db, plan="three", overage_started_at=NOON - 15 * DAY)
    made = watchpoints(db, owner, active)
    for status in ({"status": "paused", "paused_at": THEN}, {"status": "archived", "archived_at": THEN}):
        watchpoint(db, owner, created_at=datetime.fromisoformat("2020-01-01T00:00Z"), **status)
    assert stage.run("enforce_overage")["items"] == beyond
    assert [id_ for id_ in made if id_ in paused(db)] == made[active - beyond :]


def test_of_watchpoints_made_at_the_same_instant_always_the_same_are_paused(
    stage: Stage, db: psycopg.Connection
) -> None:
    owner = organization(db, plan="three", overage_started_at=NOON - 15 * DAY)
    made = sorted((watchpoint(db, owner) for _ in range(8)), key=str)
    stage.run("enforce_overage")
    assert sorted(paused(db), key=str) == made[3:]


def test_each_organisation_keeps_what_its_own_plan_has(stage: Stage, db: psycopg.Connection) -> None:
    plan(db, "five", watchpoints=5)
    kept = {}
    for name, limit in (("three", 3), ("five", 5)):
        owner = organization(db, plan=name, overage_started_at=NOON - 15 * DAY)
        kept[owner] = watchpoints(db, owner, 6)[:limit]
    assert stage.run("enforce_overage")["items"] == 3 + 1
    query = "SELECT organization_id, array_agg(id ORDER BY created_at) FROM forecasts.watchpoints "
    rows = db.execute((query + "WHERE status = 'active' GROUP BY 1").encode()).fetchall()
    assert dict(rows) == kept
