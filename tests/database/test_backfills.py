"""Backfills plan without effect, keep their rate, stop and resume, and survive any crash."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from signalbox.errors import BackfillRefused, ParamsRefused, PayloadRefused, TaskUnknown
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import abandoned_run, count, failed_run, missed_slot, runs_of, succeeded_run
from signalbox.testing.stage import NOON, Stage
from tests.support.at_once import at_once
from tests.support.tasks.fail_once import Trouble

QUARTER = timedelta(minutes=15)
DAY = timedelta(days=1)
pytestmark = pytest.mark.usefixtures("effects")


def create(stage: Stage, task: str = "note_run", hours: float = 1, **params: Any) -> dict[str, Any]:
    first = (NOON - timedelta(hours=hours)).isoformat()
    params = {"task": task, "from": first, "to": (NOON - QUARTER).isoformat()} | params
    return stage.operate("create_backfill", **params)


def advance(stage: Stage) -> dict[str, Any]:
    return stage.run("advance_backfills", NOON, force=True)


def a_minute_passes(db: psycopg.Connection) -> None:
    db.execute("UPDATE signalbox.backfill_slots SET dispatched_at = dispatched_at - interval '1 minute'")


def show(stage: Stage, made: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = stage.operate("show_backfill", id=made["backfill"]["id"])["backfill"]
    return shown


def test_a_dry_run_says_what_would_happen_and_does_nothing(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "note_run", NOON - 2 * QUARTER)
    answer = create(stage, rate_per_minute=2, dry_run=True)
    assert answer["dry_run"] == {
        "task": "note_run",
        "slots": 4,
        "already_succeeded": 1,
        "to_run": 3,
        "first": (NOON - 4 * QUARTER).isoformat(),
        "last": (NOON - QUARTER).isoformat(),
        "minutes": 2,
        "plan": [
            {"slot": (NOON - n * QUARTER).isoformat(), "status": "succeeded" if n == 2 else "missing", "runs": n != 2}
            for n in (4, 3, 2, 1)
        ],
    }
    assert count(db, "signalbox.backfills") == 0
    assert not stage.aws.invoked


def test_each_slot_runs_once_as_if_it_were_then(stage: Stage, db: psycopg.Connection) -> None:
    made = create(stage, requested_by="an operator", reason="a bug was mended")
    assert {answer["status"] for answer in stage.deliver()} == {"succeeded"}
    advance(stage)

    rows = runs_of(db, "note_run")
    assert [row["slot"] for row in rows] == [NOON - n * QUARTER for n in (4, 3, 2, 1)]
    assert {row["trigger"] for row in rows} == {"backfill"}
    assert [row["reference_time"] for row in rows] == [row["slot"] for row in rows]
    shown = show(stage, made)
    assert shown["status"] == "completed"
    assert shown["slots"] == {
        "total": 4, "pending": 0, "dispatched": 0, "succeeded": 4, "failed": 0, "skipped": 0, "cancelled": 0,
    }  # fmt: skip
    assert (shown["requested_by"], shown["reason"]) == ("an operator", "a bug was mended")


def test_no_more_slots_start_in_a_minute_than_the_rate_allows(stage: Stage, db: psycopg.Connection) -> None:
    create(stage, rate_per_minute=3)
    advance(stage)
    assert len(stage.aws.invoked) == 3
    a_minute_passes(db)
    advance(stage)
    assert len(stage.aws.invoked) == 4


def test_two_drivers_at_once_start_no_slot_twice(stage: Stage, db: psycopg.Connection) -> None:
    create(stage, hours=24, rate_per_minute=1)
    db.execute("UPDATE signalbox.backfills SET rate_per_minute = 1000")
    at_once(*(partial(advance, stage.another()) for _ in range(4)))
    started = [payload["reference_time"] for payload in stage.aws.payloads]
    assert len(started) == 96
    assert len(set(started)) == 96


def test_slots_that_have_succeeded_are_skipped_unless_forced(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "note_run", NOON - QUARTER)
    made = create(stage)
    stage.deliver()
    assert show(stage, made)["slots"]["skipped"] == 1
    assert count(db, "effects") == 3

    create(stage, force=True)
    stage.deliver()
    assert count(db, "effects") == 7


def test_a_slot_that_succeeded_in_the_meantime_is_skipped(stage: Stage, db: psycopg.Connection) -> None:
    made = create(stage)
    succeeded_run(db, "note_run", NOON - QUARTER)
    stage.deliver()
    assert count(db, "effects") == 3
    assert show(stage, made)["slots"]["skipped"] == 1


def test_a_paused_backfill_starts_nothing_until_it_is_resumed(stage: Stage, db: psycopg.Connection) -> None:
    made = create(stage, rate_per_minute=1)
    paused = stage.operate("pause_backfill", id=made["backfill"]["id"], reason="too much load")
    assert (paused["backfill"]["status"], paused["backfill"]["reason"]) == ("paused", "too much load")
    a_minute_passes(db)
    advance(stage)
    assert len(stage.aws.invoked) == 1
    stage.operate("resume_backfill", id=made["backfill"]["id"])
    assert len(stage.aws.invoked) == 2


def test_second_pause_of_a_backfill_replaces_author_time_and_reason(stage: Stage, db: psycopg.Connection) -> None:
    backfill_id = create(stage, rate_per_minute=1)["backfill"]["id"]
    stage.operate("pause_backfill", id=backfill_id, reason="too much load", by="anna")
    db.execute("UPDATE signalbox.backfills SET updated_at = updated_at - interval '1 hour'")
    before = stage.operate("show_backfill", id=backfill_id)["backfill"]["updated_at"]
    paused = stage.operate("pause_backfill", id=backfill_id, reason="audit", by="jo")["backfill"]
    assert (paused["status"], paused["changed_by"], paused["reason"]) == ("paused", "jo", "audit")
    assert paused["updated_at"] > before


def test_a_cancelled_backfill_lets_what_has_started_finish_and_starts_no_more(
    stage: Stage, db: psycopg.Connection
) -> None:
    made = create(stage, rate_per_minute=1)
    stage.operate("cancel_backfill", id=made["backfill"]["id"])
    a_minute_passes(db)
    advance(stage)
    stage.deliver()
    shown = show(stage, made)
    assert (shown["status"], shown["slots"]["succeeded"], shown["slots"]["cancelled"]) == ("cancelled", 1, 3)
    with pytest.raises(BackfillRefused, match="is cancelled: only one that is"):
        stage.operate("resume_backfill", id=made["backfill"]["id"])


def test_failed_slots_are_shown_and_resuming_tries_them_again(stage: Stage, db: psycopg.Connection) -> None:
    db.execute("INSERT INTO troubles VALUES (1)")
    made = create(stage, "fail_once", hours=1)
    [payload] = stage.aws.payloads
    stage.aws.invoked.clear()
    with pytest.raises(Exception, match="has a row"):
        stage.invoke(payload)
    advance(stage)
    assert (show(stage, made)["status"], show(stage, made)["slots"]["failed"]) == ("completed", 1)

    db.execute("DELETE FROM troubles")
    stage.operate("resume_backfill", id=made["backfill"]["id"])
    stage.deliver()
    advance(stage)
    assert (show(stage, made)["status"], show(stage, made)["slots"]["succeeded"]) == ("completed", 1)
    with pytest.raises(BackfillRefused, match="nothing to resume"):
        stage.operate("resume_backfill", id=made["backfill"]["id"])


def test_lambdas_own_retry_turns_a_failed_slot_into_a_succeeded_one(stage: Stage, db: psycopg.Connection) -> None:
    db.execute("INSERT INTO troubles VALUES (1)")
    made = create(stage, "fail_once", hours=1)
    [payload] = stage.aws.payloads
    stage.aws.invoked.clear()
    with pytest.raises(Exception, match="has a row"):
        stage.invoke(payload)
    db.execute("DELETE FROM troubles")
    stage.invoke(payload)
    assert show(stage, made)["slots"] | {"total": 1, "succeeded": 1, "failed": 0} == show(stage, made)["slots"]


def test_a_slot_whose_invocation_got_lost_is_given_out_again(stage: Stage, db: psycopg.Connection) -> None:
    made = create(stage)
    stage.aws.invoked.clear()
    db.execute("UPDATE signalbox.backfill_slots SET dispatched_at = dispatched_at - interval '14 minutes'")
    advance(stage)
    assert not stage.aws.invoked
    a_minute_passes(db)
    a_minute_passes(db)
    advance(stage)
    assert [answer["status"] for answer in stage.deliver()] == ["succeeded"] * 4
    assert show(stage, made)["slots"]["succeeded"] == 4


def test_a_slot_that_never_comes_back_fails_in_the_end(stage: Stage, db: psycopg.Connection) -> None:
    made = create(stage)
    db.execute("UPDATE signalbox.backfill_slots SET attempts = 5, dispatched_at = now() - interval '1 hour'")
    advance(stage)
    assert (show(stage, made)["status"], show(stage, made)["slots"]["failed"]) == ("completed", 4)


def test_a_slot_that_lambda_does_not_take_stays_pending(stage: Stage, db: psycopg.Connection) -> None:
    stage.aws.away.add("lambda")
    made = create(stage)
    assert show(stage, made)["slots"]["pending"] == 4
    stage.aws.away.discard("lambda")
    advance(stage)
    assert len(stage.deliver()) == 4


def test_slots_of_a_task_that_forbids_overlap_run_one_after_the_other(stage: Stage, db: psycopg.Connection) -> None:
    create(stage, "note_alone")
    advance(stage)
    assert len(stage.aws.invoked) == 1
    stage.deliver()
    advance(stage)
    assert len(stage.aws.invoked) == 1


def test_slot_blocked_by_a_running_slot_stays_pending_and_not_missed(stage: Stage, db: psycopg.Connection) -> None:
    made = create(stage, "note_alone")
    abandoned_run(db, "note_alone", NOON, lease=timedelta(minutes=1), whole_task=True)
    stage.deliver()
    assert show(stage, made)["slots"]["pending"] == 4
    assert {row["status"] for row in runs_of(db, "note_alone")} == {"running", "skipped"}


def test_an_event_of_a_forced_backfill_that_comes_twice_runs_once(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "note_run", NOON - QUARTER)
    made = create(stage, hours=0.25, force=True)
    stage.aws.invoked.extend(list(stage.aws.invoked))
    assert [answer["status"] for answer in stage.deliver()] == ["succeeded", "skipped"]
    assert show(stage, made)["slots"]["succeeded"] == 1


def test_a_forced_slot_whose_only_run_failed_is_not_taken_for_done(stage: Stage, db: psycopg.Connection) -> None:
    succeeded_run(db, "fail_once", NOON - timedelta(hours=1))
    db.execute("INSERT INTO troubles VALUES (1)")
    made = create(stage, "fail_once", hours=1, force=True)
    [payload] = stage.aws.payloads
    with pytest.raises(Exception, match="has a row"):
        stage.invoke(payload)
    assert show(stage, made)["slots"]["failed"] == 1


def test_a_cancelled_backfill_lets_go_of_slots_that_got_lost(stage: Stage, db: psycopg.Connection) -> None:
    made = create(stage)
    stage.operate("cancel_backfill", id=made["backfill"]["id"])
    db.execute("UPDATE signalbox.backfill_slots SET dispatched_at = now() - interval '1 hour'")
    advance(stage)
    assert show(stage, made)["slots"]["cancelled"] == 4


def test_a_slot_with_work_left_is_open_until_its_last_continuation(stage: Stage, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE marks AS SELECT id, 0 AS marked FROM generate_series(1, 100) AS id")
    made = create(stage, "mark_rows", hours=24)
    payload = stage.aws.invoked.popleft()[1]
    assert stage.invoke(payload, seconds=10)["more"] is True
    assert show(stage, made)["slots"]["dispatched"] == 1
    assert [answer["items"] for answer in stage.deliver()] == [100]
    assert show(stage, made)["slots"]["succeeded"] == 1


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ({"task": "note_rum"}, TaskUnknown, "did you mean 'note_run'?"),
        ({"task": "greet", "params": {"name": "a"}}, BackfillRefused, "has no schedule"),
        ({"task": "greet"}, ParamsRefused, "field 'name' is missing"),
        ({"to": "2026-03-09T00:00:00Z"}, BackfillRefused, "before it starts"),
        ({"to": "2026-03-10T12:30:00Z"}, BackfillRefused, "give a range in the past"),
        ({"from": "2026-03-10T11:44:00Z", "to": "2026-03-10T11:44:30Z"}, BackfillRefused, "has no slot between"),
        ({"from": "2016-03-10T11:44:00Z"}, BackfillRefused, "more than 100,000 slots"),
        ({"rate_per_minute": 0}, PayloadRefused, "field 'rate_per_minute'"),
        ({"from": "2026-03-10"}, PayloadRefused, "has no time zone"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused_whole(
    stage: Stage, db: psycopg.Connection, params: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        create(stage, **params)
    assert words in str(caught.value)
    assert count(db, "signalbox.backfills") == 0


def test_an_unknown_backfill_is_named(stage: Stage) -> None:
    nobody = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(BackfillRefused, match=f"no backfill has the id '{nobody}'"):
        stage.operate("pause_backfill", id=nobody)


def test_a_backfill_of_a_task_that_is_gone_does_not_stop_the_others(
    stage: Stage, db: psycopg.Connection, invokes: AwsStandIn
) -> None:
    create(stage, rate_per_minute=1)
    db.execute("UPDATE signalbox.backfills SET task = 'gone', created_at = created_at - interval '1 hour'")
    create(stage, "note_alone")
    assert [payload["task"] for payload in invokes.payloads] == ["note_run", "note_alone"]


@pytest.mark.parametrize(("only", "chosen"), [("failed", [3]), ("missing", [4, 1]), (None, [4, 3, 2, 1])])
def test_failed_or_missing_slots_alone_are_chosen(
    stage: Stage, db: psycopg.Connection, only: str | None, chosen: list[int]
) -> None:
    failed_run(db, "note_run", NOON - 3 * QUARTER)
    succeeded_run(db, "note_run", NOON - 2 * QUARTER)
    missed_slot(db, "note_run", NOON - QUARTER)
    plan = create(stage, only=only, dry_run=True)["dry_run"]
    assert [one["slot"] for one in plan["plan"]] == [(NOON - n * QUARTER).isoformat() for n in chosen]
    assert create(stage, only=only)["backfill"]["slots"]["total"] == len(chosen)


def test_backfill_of_slots_that_do_not_exist_is_refused(stage: Stage) -> None:
    assert create(stage, only="failed", dry_run=True)["dry_run"]["plan"] == []
    with pytest.raises(BackfillRefused, match="none of the range's slots is failed"):
        create(stage, only="failed")


def test_newest_slot_comes_first_where_asked_for(stage: Stage, db: psycopg.Connection) -> None:
    plan = create(stage, newest_first=True, dry_run=True)["dry_run"]["plan"]
    assert plan[0]["slot"] == (NOON - QUARTER).isoformat()
    create(stage, newest_first=True, rate_per_minute=2)
    assert [answer["slot"] for answer in stage.deliver()] == [(NOON - n * QUARTER).isoformat() for n in (1, 2)]


def test_backfill_pauses_after_so_many_failures_and_can_be_resumed(stage: Stage, db: psycopg.Connection) -> None:
    db.execute("INSERT INTO troubles VALUES (1)")
    made = create(stage, "fail_once", rate_per_minute=1, stop_after_failures=1)
    with suppress(Trouble):
        stage.deliver()
    a_minute_passes(db)
    advance(stage)
    shown = show(stage, made)
    assert (shown["status"], shown["reason"], shown["slots"]["failed"]) == ("paused", "failed slots reached 1", 1)
    stage.operate("resume_backfill", id=made["backfill"]["id"])
    assert show(stage, made)["slots"]["failed"] == 0


def test_rate_changes_while_the_backfill_runs(stage: Stage, db: psycopg.Connection) -> None:
    made = create(stage, rate_per_minute=1)
    changed = stage.operate(
        "change_backfill", id=made["backfill"]["id"], rate_per_minute=2, by="jo", reason="quiet night"
    )
    assert (changed["backfill"]["rate_per_minute"], changed["backfill"]["changed_by"]) == (2, "jo")
    a_minute_passes(db)
    advance(stage)
    assert len(stage.deliver()) == 3
    stage.operate("cancel_backfill", id=made["backfill"]["id"])
    with pytest.raises(BackfillRefused, match="is cancelled, and starts no more slots"):
        stage.operate("change_backfill", id=made["backfill"]["id"], rate_per_minute=9)


def test_each_action_on_a_backfill_is_in_the_audit_log(stage: Stage, db: psycopg.Connection) -> None:
    made = create(stage, requested_by="anna", reason="a bug was mended")["backfill"]["id"]
    stage.operate("pause_backfill", id=made, by="jo", reason="upstream is down")
    stage.operate("change_backfill", id=made, by="jo", rate_per_minute=2)
    stage.operate("resume_backfill", id=made, by="jo")
    stage.operate("cancel_backfill", id=made)
    with pytest.raises(BackfillRefused):
        stage.operate("pause_backfill", id=made, by="jo")
    query = "SELECT actor, action, entity_id, detail FROM signalbox.audit_log ORDER BY id"
    assert db.execute(query).fetchall() == [
        ("anna", "backfill.create", made, {"task": "note_run", "reason": "a bug was mended"}),
        ("jo", "backfill.pause", made, {"reason": "upstream is down"}),
        ("jo", "backfill.change", made, {"rate_per_minute": 2}),
        ("jo", "backfill.resume", made, {}),
        ("unnamed", "backfill.cancel", made, {}),
    ]
