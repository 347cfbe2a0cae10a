"""A bulk action is kept, goes on each minute until its end, and can be stopped."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from signalbox.budget import Budget
from signalbox.dead_letters import redrive as redriving
from signalbox.errors import BulkActionUnknown, TransitionRefused
from signalbox.jobs.dependency import Dependency
from signalbox.operate import bulk, bulk_actions, caps
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BulkContext, BulkPass, BulkResult
from signalbox.operate.cancel import cancel
from signalbox.operate.caps import CapTarget
from signalbox.operate.filters import DeadLetterFilter, JobFilter
from signalbox.operate.pause import pause, pause_steps
from signalbox.operate.retry_now import retry_now
from signalbox.submit.new_job import NewJob
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import count, select
from signalbox.testing.sqs_events import failed_invocation
from signalbox.testing.stage import Stage
from tests.support.dead_letters import add_letter, consume, job_of, letter, redrive_all
from tests.support.lock_waits import wait_until_blocked

JO = Actor("jo", "because")
ACME = JobFilter(tenant="acme")
ALL = DeadLetterFilter(job_type="obey")
MINUTE = timedelta(minutes=1)
TASK = "advance_bulk_actions"


@dataclass(frozen=True, slots=True)
class Looks(Budget):
    """A budget that is spent after it has been looked at so many times."""

    left: list[None]

    @property
    def spent(self) -> bool:
        return not self.left or self.left.pop() is not None


def looks(number: int) -> Budget:
    return Looks(Budget.of(60).ends_at, [None] * number)


def submit(stage: Stage, number: int, **fields: Any) -> list[str]:
    return [job.id for job in stage.submit_all([NewJob(job_type="do_nothing", tenant="acme", **fields)] * number)]


def begin(stage: Stage, act: Any, budget: Budget, announce: Any = lambda _: None) -> BulkResult:
    done: BulkResult = act(stage.db, stage.job_types, ACME, BulkContext(JO, budget, announce))
    return done


def shown(stage: Stage, id_: str | None) -> dict[str, Any]:
    found: dict[str, Any] = stage.operate("show_bulk_action", id=id_)["bulk_action"]
    return found


@pytest.fixture
def in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signalbox.operate.listing.BATCH", 2)


def test_action_that_one_pass_completes_is_kept_with_what_it_did(stage: Stage) -> None:
    submit(stage, 3)
    answer = stage.operate("cancel_jobs", tenant="acme", by="jo", reason="because")
    found = shown(stage, answer["bulk_action"])
    assert (found["status"], found["counts"], found["left"]) == ("completed", {"cancelled": 3}, 0)
    assert (found["action"], found["selection"]["tenant"], found["requested_by"]) == ("cancel", "acme", "jo")
    [noted] = select(stage.db, "SELECT * FROM signalbox.audit_log")
    assert (noted["action"], noted["entity_id"], noted["actor"]) == ("bulk.cancel", found["id"], "jo")
    assert noted["detail"]["reason"] == "because"
    assert stage.operate("list_bulk_actions", status="running")["bulk_actions"] == []


def test_action_on_named_jobs_has_an_audit_row_each_and_is_not_kept(stage: Stage) -> None:
    [id_] = submit(stage, 1)
    assert "bulk_action" not in stage.operate("cancel_jobs", ids=[id_])
    assert count(stage.db, "signalbox.bulk_actions") == 0


def test_action_that_time_was_too_short_for_goes_on_after_its_last_batch(stage: Stage, in_pairs: None) -> None:
    ids = submit(stage, 5)
    done = begin(stage, cancel, looks(2))
    assert (done.counts["cancelled"], done.more) == (2, True)
    found = shown(stage, done.id)
    assert (found["status"], found["left"], found["more"]) == ("running", 3, False)
    late = submit(stage, 1)
    assert stage.run(TASK)["items"] == 3
    assert shown(stage, done.id)["counts"] == {"cancelled": 5}
    assert shown(stage, done.id)["status"] == "completed"
    assert stage.statuses(*ids, *late) == ["cancelled"] * 5 + ["queued"]


def test_action_that_changes_few_of_many_reaches_the_last_of_them(stage: Stage, in_pairs: None) -> None:
    """What a retry does not change still matches its filter: each pass begins where the last one ended."""
    [first] = submit(stage, 1, delay=timedelta(hours=1))
    submit(stage, 4, delay=timedelta(0), depends_on=[Dependency(first)])
    done = begin(stage, retry_now, looks(2))
    assert done.counts == {"hastened": 0}
    assert stage.run(TASK)["items"] == 1
    assert shown(stage, done.id)["status"] == "completed"


def test_locked_jobs_are_changed_once_they_are_free(
    stage: Stage, other: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "LOCK_TIMEOUT_MS", "20")
    free, locked = submit(stage, 2)
    with other.db.transaction():
        other.db.execute("SELECT FROM signalbox.jobs WHERE id = %s FOR UPDATE", (locked,))
        done = begin(stage, cancel, Budget.of(60))
        assert (done.counts["cancelled"], done.more) == (1, True)
        assert stage.run(TASK)["items"] == 0
    assert stage.run(TASK, reference_time="2026-03-10T12:01:00Z")["items"] == 1
    assert stage.statuses(free, locked) == ["cancelled"] * 2


def test_action_that_is_cancelled_stops_before_its_next_batch(stage: Stage, other: Stage, in_pairs: None) -> None:
    submit(stage, 5)

    def stop(_: Sequence[str]) -> None:
        [running] = other.operate("list_bulk_actions")["bulk_actions"]
        if running["status"] == "running":
            other.operate("cancel_bulk_action", id=running["id"][:23], by="ada", reason="too many")

    done = begin(stage, cancel, Budget.of(60), stop)
    assert (done.counts["cancelled"], done.more) == (2, False)
    assert (shown(stage, done.id)["status"], shown(stage, done.id)["counts"]["cancelled"]) == ("cancelled", 2)
    [noted] = select(stage.db, "SELECT * FROM signalbox.audit_log WHERE entity_id = %s AND actor = 'ada'", done.id)
    assert (noted["action"], noted["detail"]["reason"]) == ("bulk_action.cancel", "too many")
    assert (stage.run(TASK)["items"], count(stage.db, "signalbox.jobs WHERE status = 'cancelled'")) == (0, 2)
    with pytest.raises(TransitionRefused, match="is cancelled: there is nothing left to cancel"):
        stage.operate("cancel_bulk_action", id=done.id)


def test_batch_that_a_cancellation_overtakes_is_undone(stage: Stage, other: Stage) -> None:
    """The cancellation is committed while the batch waits to record itself."""
    ids = submit(stage, 2)
    kept = bulk_actions.create(stage.db, "pause", ACME, JO, Budget.of(60))
    with ThreadPoolExecutor(1) as thread:
        with other.db.transaction():
            bulk_actions.cancel(other.db, kept.id, JO)
            context = BulkContext(JO, Budget.of(60))
            one_pass = BulkPass(stage.db, ACME, context, "pause", pause_steps(stage.db, JO), kept)
            ran = thread.submit(one_pass.run)
            wait_until_blocked(other.db)
        assert ran.result().counts == {"paused": 0}
    assert stage.statuses(*ids) == ["queued"] * 2


def test_action_is_taken_by_one_pass_at_a_time_and_again_after_a_crash(stage: Stage) -> None:
    submit(stage, 2)
    kept = bulk_actions.create(stage.db, "pause", ACME, JO, Budget.of(60))
    assert (bulk_actions.take(stage.db, kept.id, Budget.of(60)), stage.run(TASK)["items"]) == (None, 0)
    stage.db.execute("UPDATE signalbox.bulk_actions SET leased_until = clock_timestamp() - interval '1 s'")
    assert stage.run(TASK, reference_time="2026-03-10T12:01:00Z")["items"] == 2


def test_pause_of_a_lane_ends_although_its_first_pass_had_no_time(stage: Stage) -> None:
    alone, *others = submit(stage, 3)
    stage.operate("pause", ids=[alone])
    stage.operate("pause", kind="tenant", key="acme")
    stage.db.execute("UPDATE signalbox.jobs SET status = 'paused', send_at = NULL WHERE status = 'queued'")
    done = caps.resume_target(stage.db, stage.job_types, CapTarget("tenant", "acme"), BulkContext(JO, looks(0)))
    assert (done.more, stage.statuses(alone, *others)) == (True, ["paused"] * 3)
    assert stage.run(TASK)["items"] == 2
    assert stage.statuses(alone, *others) == ["paused", "pending", "pending"]


def test_unknown_action_is_refused(stage: Stage) -> None:
    with pytest.raises(BulkActionUnknown, match="no bulk action has the id"):
        stage.operate("show_bulk_action", id="00000000-0000-7000-8000-000000000000")


def test_filter_by_payload_is_shown_without_its_values(stage: Stage) -> None:
    stage.submit("obey", payload={"word": "complete"})
    since = (datetime.now(UTC) - MINUTE).isoformat()
    answer = stage.operate("pause", job_type="obey", since=since, payload={"word": "complete"})
    assert answer["paused"] == 1
    assert shown(stage, answer["bulk_action"])["selection"]["payload"] == ["word"]
    assert "complete" not in str(select(stage.db, "SELECT detail FROM signalbox.audit_log"))


def test_actions_that_ended_a_season_ago_are_pruned(stage: Stage) -> None:
    stage.operate("pause", tenant="acme")
    begin(stage, pause, looks(0))
    stage.db.execute("UPDATE signalbox.bulk_actions SET finished_at = finished_at - interval '91 days'")
    stage.run("prune_history", datetime.now(UTC))
    assert [one["status"] for one in stage.operate("list_bulk_actions")["bulk_actions"]] == ["running"]


# ---- redrives


def test_redrive_at_a_rate_goes_on_without_a_gap_and_leaves_the_rest_open_once_cancelled(stage: Stage) -> None:
    made = [add_letter(stage) for _ in range(7)]
    now = datetime.now(UTC)
    answer = redrive_all(stage, ALL, now=now, rate_per_minute=3)
    assert (answer["redriven"], answer["left"], answer["last_at"]) == (3, 4, (now + MINUTE * 2 / 3).isoformat())
    assert stage.run(TASK, now + MINUTE / 2)["items"] == 2
    times = [job_of(stage, id_)["scheduled_for"] for id_ in made[:5]]
    assert [(at - now).total_seconds() for at in times] == pytest.approx([0, 20, 40, 60, 80])
    found = shown(stage, answer["bulk_action"])
    assert (found["counts"], found["left"], found["rate_per_minute"]) == ({"redriven": 5, "refused": 0}, 2, 3)
    stage.operate("cancel_bulk_action", id=found["id"])
    assert stage.run(TASK, now + 2 * MINUTE)["items"] == 0
    assert [letter(stage, id_)["status"] for id_ in made] == ["redriven"] * 5 + ["pending"] * 2


def test_redrive_passes_those_that_can_not_be_and_says_why(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signalbox.dead_letters.restart.BATCH", 1)
    refused, fine = add_letter(stage), add_letter(stage)
    stage.db.execute("DELETE FROM signalbox.jobs WHERE id = %s", (job_of(stage, refused)["id"],))
    answer = redrive_all(stage, ALL)
    assert (answer["redriven"], answer["refused"]["count"], answer["left"]) == (1, 1, 0)
    found = shown(stage, answer["bulk_action"])
    assert (found["status"], found["counts"]) == ("completed", {"redriven": 1, "refused": 1})
    assert found["refused"][0]["id"] == refused
    assert letter(stage, fine)["status"] == "redriven"


def test_job_that_fails_again_is_not_redriven_again_by_the_same_action(stage: Stage) -> None:
    first, second = add_letter(stage), add_letter(stage)
    now = datetime.now(UTC)
    redrive_all(stage, ALL, now=now, rate_per_minute=1)
    stage.work(str(job_of(stage, first)["id"]))
    assert letter(stage, first)["status"] == "pending"
    for minute in range(1, 4):
        stage.run(TASK, now + minute * MINUTE)
    assert [letter(stage, id_)["redrives"] for id_ in (first, second)] == [1, 1]


def test_invocations_are_made_so_many_a_pass_and_the_others_later(
    stage: Stage, invokes: AwsStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signalbox.dead_letters.restart.MOST_INVOCATIONS", 2)
    for _ in range(3):
        consume(stage, failed_invocation())
    jobs = [add_letter(stage) for _ in range(2)]
    answer = redrive_all(stage, DeadLetterFilter(since=datetime.now(UTC) - MINUTE))
    assert (len(invokes.payloads), answer["left"]) == (2, 3)
    assert stage.run(TASK)["items"] == 3
    assert (len(invokes.payloads), [letter(stage, id_)["status"] for id_ in jobs]) == (3, ["redriven"] * 2)


def test_action_that_can_not_go_on_does_not_hold_up_the_others(stage: Stage, invokes: AwsStandIn) -> None:
    consume(stage, failed_invocation())
    stuck = bulk_actions.create(stage.db, "redrive", DeadLetterFilter(source="invocation"), JO, looks(0))
    submit(stage, 2)
    fine = bulk_actions.create(stage.db, "pause", ACME, JO, looks(0))
    stage.db.execute("UPDATE signalbox.bulk_actions SET leased_until = NULL")
    invokes.away.add("lambda")
    assert stage.run(TASK)["items"] == 2
    assert [shown(stage, one.id)["status"] for one in (stuck, fine)] == ["running", "completed"]
    invokes.away.clear()
    stage.run(TASK, reference_time="2026-03-10T12:01:00Z")
    assert (shown(stage, stuck.id)["status"], len(invokes.payloads)) == ("completed", 1)
    assert redriving.count_left(stage.db, stuck.letter_filter, None) == 1
