"""Operators cancel, pause, resume and retry jobs, one by one or by the hundred thousand."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.budget import Budget
from signalbox.errors import IdRefused, JobRefused, JobTypeUnknown, JobUnknown, TransitionRefused
from signalbox.jobs.dependency import Dependency
from signalbox.operate import bulk, caps
from signalbox.operate.audit import Actor
from signalbox.operate.bulk import BulkContext, BulkResult
from signalbox.operate.cancel import cancel
from signalbox.operate.caps import CapTarget, Kind
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import preview
from signalbox.operate.pause import pause, resume
from signalbox.operate.retry_now import retry_now
from signalbox.submit.new_job import NewJob
from signalbox.testing.rows import id_of
from signalbox.testing.stage import Stage
from tests.support.attempts import attempt, claim, end
from tests.support.lock_waits import wait_until_blocked

JO = Actor("jo", "because")
HOUR = timedelta(hours=1)
NOBODY = "00000000-0000-7000-8000-000000000000"


def order(act: Callable[..., BulkResult], stage: Stage, *ids: str, **given: Any) -> BulkResult:
    """Let jo act on these jobs, or on those that the filter selects."""
    return act(stage.db, stage.job_types, JobFilter(ids=[*ids] or None, **given), BulkContext(JO, Budget.of(60)))


def pause_all(stage: Stage, kind: Kind, key: str) -> None:
    caps.pause_target(stage.db, stage.job_types, CapTarget(kind, key), by=JO)


def resume_all(stage: Stage, kind: Kind, key: str) -> BulkResult:
    return caps.resume_target(stage.db, stage.job_types, CapTarget(kind, key), BulkContext(JO, Budget.of(60)))


def audit(db: psycopg.Connection[Any]) -> list[Any]:
    statement = "SELECT actor, action, entity_type, entity_id, detail FROM signalbox.audit_log ORDER BY id"
    return db.execute(statement).fetchall()


def in_state(stage: Stage, state: str) -> str:
    """Return a job in that state."""
    job_id = stage.submit("do_nothing")
    if state in ("completed", "failed"):
        attempt(stage.db, job_id, status=state)
    elif state == "running":
        claim(stage.db, job_id)
    elif state != "queued":
        order({"cancelled": cancel, "paused": pause}[state], stage, job_id)
    assert stage.status(job_id) == state
    return job_id


# ---- cancel


def test_what_waits_is_cancelled_at_once_and_says_by_whom_and_why(stage: Stage) -> None:
    queued, pending = stage.submit("do_nothing"), stage.submit("do_nothing", delay=HOUR)
    paused = stage.submit("do_nothing")
    order(pause, stage, paused)
    assert order(cancel, stage, queued, pending, paused).counts == {"cancelled": 3, "requested": 0}
    for job_id in (queued, pending, paused):
        job = stage.job(job_id)
        assert (job["status"], job["send_at"]) == ("cancelled", None)
        assert job["completed_at"] == job["updated_at"] == job["cancel_requested_at"]
        assert job["error_details"] == {"type": "Cancelled", "message": "cancelled by jo: because"}


def test_what_runs_is_asked_and_keeps_its_lease_until_its_worker_has_heard(stage: Stage) -> None:
    job_id = stage.submit("do_nothing")
    claim(stage.db, job_id)
    assert order(cancel, stage, job_id).counts == {"cancelled": 0, "requested": 1}
    assert stage.job(job_id)["cancel_requested_at"] is not None
    assert order(cancel, stage, job_id).counts == {"cancelled": 0, "requested": 0}, "it has been asked already"
    end(stage.db, {job_id: "completed"})
    assert stage.status(job_id) == "completed"


def test_a_running_job_that_would_be_tried_again_is_cancelled_instead(stage: Stage) -> None:
    job_id = stage.submit("do_nothing")
    claim(stage.db, job_id)
    order(cancel, stage, job_id)
    end(stage.db, {job_id: "pending"})
    assert stage.status(job_id) == "cancelled"


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_what_has_ended_is_refused_with_its_state(stage: Stage, state: str) -> None:
    job_id = in_state(stage, state)
    before = stage.job(job_id), audit(stage.db)
    with pytest.raises(TransitionRefused, match=f"job {job_id} is {state}: it has ended"):
        order(cancel, stage, job_id)
    assert (stage.job(job_id), audit(stage.db)) == before


def test_of_several_the_ended_ones_stay_and_the_others_are_cancelled(stage: Stage) -> None:
    over, waits = in_state(stage, "completed"), stage.submit("do_nothing")
    assert order(cancel, stage, over, waits).counts == {"cancelled": 1, "requested": 0}
    assert (stage.status(over), stage.status(waits)) == ("completed", "cancelled")


def test_an_id_that_no_job_has_stops_the_order_before_it_begins(stage: Stage) -> None:
    waits = stage.submit("do_nothing")
    with pytest.raises(JobUnknown, match=f"no job has the id {NOBODY}"):
        order(cancel, stage, waits, NOBODY)
    with pytest.raises(IdRefused, match="'12' is not the id of a job"):
        order(cancel, stage, "12")
    assert stage.status(waits) == "queued"


def test_an_order_about_nothing_in_particular_is_refused(stage: Stage) -> None:
    with pytest.raises(JobRefused, match="every job: give ids, or at least one filter"):
        order(cancel, stage, until=datetime.now(UTC))


def test_a_misspelt_type_is_refused_and_one_that_only_jobs_know_is_not(stage: Stage) -> None:
    with pytest.raises(JobTypeUnknown, match="did you mean 'do_nothing'"):
        order(cancel, stage, job_type="do_nothin")
    job_id = stage.submit("do_nothing")
    stage.db.execute("UPDATE signalbox.jobs SET job_type = 'of_old_code'")
    assert order(cancel, stage, job_type="of_old_code").counts == {"cancelled": 1, "requested": 0}
    assert stage.status(job_id) == "cancelled"


@pytest.mark.parametrize(
    ("fields", "given"),
    [
        ({"tenant": "acme"}, {"tenant": "acme"}),
        ({"group": "night"}, {"group": "night"}),
        ({"tags": ["red", "blue"]}, {"tag": "blue"}),
        ({"cap_key": "printer"}, {"cap_key": "printer"}),
        ({"correlation_id": "c-1"}, {"correlation": "c-1"}),
        ({"lane": "low"}, {"lane": "low"}),
        ({"delay": HOUR}, {"status": "pending"}),
        ({"job_type": "note_job", "payload": {"subject": "s-1"}}, {"subject": "s-1"}),
        ({"job_type": "note_job"}, {"job_type": "note_job"}),
    ],
    ids=lambda value: next(iter(value)),
)
def test_a_filter_meets_the_jobs_that_it_names_and_no_others(
    stage: Stage, fields: dict[str, Any], given: dict[str, Any]
) -> None:
    wanted, other = stage.submit(NewJob(**{"job_type": "do_nothing"} | fields)), stage.submit("do_nothing")
    stage.db.execute("CREATE TABLE IF NOT EXISTS notes (job_id uuid, subject text)")
    assert order(cancel, stage, **given).counts == {"cancelled": 1, "requested": 0}
    assert (stage.status(wanted), stage.status(other)) == ("cancelled", "queued")


def test_jobs_of_a_stretch_of_time_are_found_by_when_they_were_created(stage: Stage) -> None:
    old, new = stage.submit("do_nothing"), stage.submit("do_nothing")
    stage.db.execute("UPDATE signalbox.jobs SET created_at = created_at - interval '1 day' WHERE id = %s", (old,))
    assert order(cancel, stage, since=datetime.now(UTC) - HOUR).counts == {"cancelled": 1, "requested": 0}
    assert (stage.status(old), stage.status(new)) == ("queued", "cancelled")


def test_job_of_a_submitter_whose_clock_is_slow_is_found(stage: Stage) -> None:
    now = datetime.now(UTC)
    job_id = stage.submit("do_nothing", id=id_of(now - timedelta(minutes=9)))
    assert order(cancel, stage, since=now - timedelta(minutes=1)).counts == {"cancelled": 1, "requested": 0}
    assert stage.status(job_id) == "cancelled"


def test_jobs_are_found_by_the_job_that_submitted_them(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    child = stage.submit("do_nothing", parent_id=parent)
    assert order(cancel, stage, parent=parent).counts == {"cancelled": 1, "requested": 0}
    assert (stage.status(parent), stage.status(child)) == ("queued", "cancelled")


def test_jobs_of_a_schedule_are_found_by_its_name_or_id(stage: Stage) -> None:
    [schedule_id] = stage.db.execute(
        "INSERT INTO signalbox.job_schedules (name, job_type, schedule_type, interval_ms) "
        "VALUES ('hourly', 'do_nothing', 'interval', 3600000) RETURNING id::text"
    ).fetchone() or [""]
    one, two, other = (
        stage.submit("do_nothing", schedule_id=schedule_id),
        stage.submit("do_nothing", schedule_id=schedule_id),
        stage.submit("do_nothing"),
    )
    for named in ("hourly", schedule_id):
        assert preview(stage.db, stage.job_types, JobFilter(schedule=named)).counts == {"queued": 2}
    assert order(cancel, stage, schedule="hourly", until=None).counts == {"cancelled": 2, "requested": 0}
    assert [stage.status(job_id) for job_id in (one, two, other)] == ["cancelled", "cancelled", "queued"]


def test_what_depends_on_a_cancelled_job_ends_as_its_policy_says(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    waits = {
        policy: stage.submit("do_nothing", depends_on=[Dependency(parent, on_failure=policy)])
        for policy in ("fail", "cancel", "proceed")
    }
    done = order(cancel, stage, parent)
    states = {policy: stage.status(job_id) for policy, job_id in waits.items()}
    assert states == {"fail": "failed", "cancel": "cancelled", "proceed": "pending"}
    assert done.due == [waits["proceed"]]


def test_a_group_whose_jobs_are_cancelled_with_each_other_counts_each_once(stage: Stage) -> None:
    parent = stage.submit("do_nothing", group="night")
    child = stage.submit("do_nothing", group="night", depends_on=[Dependency(parent, on_failure="cancel")])
    assert order(cancel, stage, group="night").counts == {"cancelled": 2, "requested": 0}
    counts = stage.db.execute("SELECT total, completed, failed, cancelled FROM signalbox.job_groups").fetchone()
    assert counts == (2, 0, 0, 2)
    assert stage.status(child) == "cancelled"


def test_child_cancelled_by_two_parents_in_turn_is_counted_once(stage: Stage) -> None:
    parents = [stage.submit("do_nothing"), stage.submit("do_nothing")]
    stage.submit(
        "do_nothing", group="night", depends_on=[Dependency(parent, on_failure="cancel") for parent in parents]
    )
    for parent in parents:
        order(cancel, stage, parent)
    assert stage.db.execute("SELECT cancelled FROM signalbox.job_groups").fetchone() == (1,)


def test_many_are_cancelled_in_batches_none_of_which_holds_the_others_up(
    stage: Stage, other: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signalbox.operate.listing.BATCH", 100)
    ids = [job.id for job in stage.submit_all([NewJob(job_type="do_nothing", tenant="acme")] * 1050)]
    acme, told = JobFilter(tenant="acme"), list[str]()
    with other.db.transaction():
        # A worker is at one of them and has not committed: the others need not wait for it.
        other.db.execute("SELECT FROM signalbox.jobs WHERE id = %s FOR UPDATE", (ids[500],))
        done = cancel(stage.db, stage.job_types, acme, BulkContext(JO, Budget.of(1), told.extend))
        assert (done.counts["cancelled"], done.more) == (1049, True)
    assert stage.status(ids[500]) == "queued"
    last = cancel(stage.db, stage.job_types, acme, BulkContext(JO, Budget.of(60), told.extend))
    assert last.counts == {"cancelled": 1, "requested": 0}
    assert sorted(told) == sorted(ids)


def test_bulk_action_leaves_locked_jobs_and_says_there_is_more(
    stage: Stage, other: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "LOCK_TIMEOUT_MS", "20")
    free, locked = stage.submit("do_nothing", tenant="acme"), stage.submit("do_nothing", tenant="acme")
    with other.db.transaction():
        other.db.execute("SELECT FROM signalbox.jobs WHERE id = %s FOR UPDATE", (locked,))
        first, second = order(cancel, stage, tenant="acme"), order(cancel, stage, tenant="acme")
    assert [(one.counts["cancelled"], one.more) for one in (first, second)] == [(1, True), (0, True)]
    assert (stage.status(free), stage.status(locked)) == ("cancelled", "queued")


def test_bulk_action_without_time_changes_nothing_and_says_there_is_more(stage: Stage) -> None:
    job_id = stage.submit("do_nothing", tenant="acme")
    done = cancel(stage.db, stage.job_types, JobFilter(tenant="acme"), BulkContext(JO, Budget.of(0)))
    assert (done.counts, done.more) == ({"cancelled": 0, "requested": 0}, True)
    assert stage.status(job_id) == "queued"


def test_jobs_that_come_while_an_order_is_carried_out_are_not_meant(stage: Stage) -> None:
    before = stage.submit("do_nothing", tenant="acme")
    seen = preview(stage.db, stage.job_types, JobFilter(tenant="acme"))
    after = stage.submit("do_nothing", tenant="acme")
    order(cancel, stage, tenant="acme", until=datetime.fromisoformat(seen.as_of))
    assert (stage.status(before), stage.status(after)) == ("cancelled", "queued")


def test_a_preview_counts_and_shows_a_sample_and_changes_nothing(stage: Stage) -> None:
    queued, pending = stage.submit("do_nothing", tenant="acme"), stage.submit("do_nothing", tenant="acme", delay=HOUR)
    seen = preview(stage.db, stage.job_types, JobFilter(tenant="acme"))
    assert seen.counts == {"pending": 1, "queued": 1}
    assert [row["id"] for row in seen.sample] == [pending, queued]
    assert audit(stage.db) == []


def test_every_order_is_in_the_audit_log_with_who_and_why(stage: Stage) -> None:
    one = stage.submit("do_nothing", tenant="acme")
    order(pause, stage, one)
    order(cancel, stage, tenant="acme")
    (actor, action, kind, entity, detail), (_, bulk_action, bulk_kind, _, bulk_detail) = audit(stage.db)
    assert (actor, action, kind, entity, detail) == ("jo", "job.pause", "job", one, {"reason": "because"})
    assert (bulk_action, bulk_kind) == ("bulk.cancel", "bulk_action")
    assert bulk_detail["selection"]["tenant"] == "acme"


# ---- races


def test_a_job_that_is_claimed_while_it_is_cancelled_is_asked_to_stop(stage: Stage, other: Stage) -> None:
    """The order must neither miss the uncommitted claim nor cancel the job under its worker."""
    job_id = stage.submit("do_nothing")
    with ThreadPoolExecutor(1) as thread:
        with other.db.transaction():
            claim(other.db, job_id)
            ordered = thread.submit(order, cancel, stage, job_id)
            wait_until_blocked(other.db)
        assert ordered.result().counts == {"cancelled": 0, "requested": 1}
    job = stage.job(job_id)
    assert (job["status"], job["cancel_requested_at"] is not None) == ("running", True)


def test_a_job_that_is_cancelled_while_it_is_claimed_is_not_run(stage: Stage, other: Stage) -> None:
    job_id = stage.submit("do_nothing")
    with ThreadPoolExecutor(1) as thread:
        with other.db.transaction():
            order(cancel, other, job_id)
            claimed = thread.submit(claim, stage.db, job_id)
            wait_until_blocked(other.db)
        claimed.result()
    assert stage.status(job_id) == "cancelled"
    assert stage.db.execute("SELECT count(*) FROM signalbox.job_executions").fetchone() == (0,)


def test_resume_releases_jobs_that_a_concurrent_claim_pauses(stage: Stage, other: Stage) -> None:
    job_id = stage.submit("do_nothing")
    pause_all(stage, "type", "do_nothing")
    with ThreadPoolExecutor(1) as thread:
        with other.db.transaction():
            claim(other.db, job_id)  # makes it paused, and has not committed
            ordered = thread.submit(resume_all, stage, "type", "do_nothing")
            wait_until_blocked(other.db)
        assert ordered.result().counts == {"resumed": 1, "held": 0}
    assert stage.status(job_id) == "pending"


def test_two_pauses_that_end_at_once_leave_nothing_held(stage: Stage, other: Stage) -> None:
    ids = [stage.submit("do_nothing", tenant="acme") for _ in range(20)]
    for kind, key in (("type", "do_nothing"), ("tenant", "acme")):
        pause_all(stage, kind, key)  # type: ignore[arg-type]
    claim(stage.db, *ids)
    assert {stage.status(job_id) for job_id in ids} == {"paused"}
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(resume_all, stage, "type", "do_nothing")
        second = threads.submit(resume_all, other, "tenant", "acme")
        first.result(), second.result()
    assert {stage.status(job_id) for job_id in ids} == {"pending"}


# ---- pause and resume


def test_a_paused_job_is_not_run_until_it_is_resumed(stage: Stage) -> None:
    job_id = stage.submit("do_nothing")
    assert order(pause, stage, job_id).counts == {"paused": 1}
    claim(stage.db, job_id)
    job = stage.job(job_id)
    assert (job["status"], job["paused_by"], job["send_at"]) == ("paused", "jo", None)
    done = order(resume, stage, job_id)
    assert (done.counts, done.due) == ({"resumed": 1, "held": 0}, [job_id])
    claim(stage.db, job_id)
    assert stage.status(job_id) == "running"


def test_a_resumed_job_still_waits_for_its_time_and_for_its_parents(stage: Stage) -> None:
    parent = stage.submit("do_nothing")
    later, child = stage.submit("do_nothing", delay=HOUR), stage.submit("do_nothing", depends_on=[Dependency(parent)])
    order(pause, stage, later, child)
    done = order(resume, stage, later, child)
    assert (done.counts["resumed"], done.due) == (2, [])
    assert stage.job(later)["send_at"] == stage.job(later)["scheduled_for"]
    assert (stage.status(child), stage.job(child)["send_at"]) == ("pending", None)


def test_what_another_pause_holds_stays_paused_until_that_ends_too(stage: Stage) -> None:
    job_id = stage.submit("do_nothing", tenant="acme")
    order(pause, stage, job_id)
    pause_all(stage, "tenant", "acme")
    assert order(resume, stage, job_id).counts == {"resumed": 0, "held": 1}
    assert stage.status(job_id) == "paused"
    assert resume_all(stage, "tenant", "acme").counts == {"resumed": 1, "held": 0}
    assert stage.status(job_id) == "pending"


def test_the_end_of_a_pause_of_many_does_not_end_that_of_one(stage: Stage) -> None:
    alone, held = stage.submit("do_nothing"), stage.submit("do_nothing")
    order(pause, stage, alone)
    pause_all(stage, "type", "do_nothing")
    claim(stage.db, held)
    assert resume_all(stage, "type", "do_nothing").counts == {"resumed": 1, "held": 1}
    assert (stage.status(alone), stage.status(held)) == ("paused", "pending")


@pytest.mark.parametrize("state", ["running", "completed", "failed", "cancelled", "paused"])
def test_what_does_not_wait_can_not_be_paused(stage: Stage, state: str) -> None:
    with pytest.raises(TransitionRefused, match=f"is {state} and can't be paused"):
        order(pause, stage, in_state(stage, state))


def test_what_is_not_paused_can_not_be_resumed(stage: Stage) -> None:
    with pytest.raises(TransitionRefused, match="is queued and can't be resumed"):
        order(resume, stage, stage.submit("do_nothing"))


def test_of_many_resumed_jobs_only_the_first_are_sent_at_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signalbox.operate.listing.BATCH", 10)
    monkeypatch.setattr(bulk, "SENT_AT_ONCE", 10)
    stage.submit_all([NewJob(job_type="do_nothing", tenant="acme")] * 30)
    order(pause, stage, tenant="acme")
    done = order(resume, stage, tenant="acme")
    due = stage.db.execute("SELECT id::text FROM signalbox.jobs WHERE send_at <= now()").fetchall()
    assert (done.counts["resumed"], len(done.due), len(due)) == (30, 10, 20)
    assert set(done.due).isdisjoint(id_ for (id_,) in due)


# ---- retry


def test_a_job_that_waits_for_its_time_is_tried_now(stage: Stage) -> None:
    job_id = stage.submit("do_nothing", delay=HOUR)
    claim(stage.db, job_id)
    assert stage.status(job_id) == "pending"
    done = order(retry_now, stage, job_id)
    assert (done.counts, done.due) == ({"hastened": 1}, [job_id])
    claim(stage.db, job_id)
    assert stage.status(job_id) == "running"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("queued", "sent to a worker"),
        ("running", "wait for its result"),
        ("paused", "signalbox resume"),
        ("failed", "signalbox redrive"),
        ("completed", "submit another"),
        ("cancelled", "submit another"),
    ],
)
def test_a_retry_of_what_does_not_wait_says_what_to_do_instead(stage: Stage, state: str, words: str) -> None:
    with pytest.raises(TransitionRefused, match=f"is {state}.*{words}"):
        order(retry_now, stage, in_state(stage, state))


def test_a_retry_does_not_overtake_the_parents(stage: Stage) -> None:
    child = stage.submit("do_nothing", depends_on=[Dependency(stage.submit("do_nothing"))])
    with pytest.raises(TransitionRefused, match="waits for 1 other jobs"):
        order(retry_now, stage, child)


def test_a_transition_that_the_database_refuses_reads_as_an_error_of_ours(stage: Stage) -> None:
    job_id = in_state(stage, "completed")
    refused = pytest.raises(TransitionRefused, match=f"job {job_id} is completed: it can't become pending")
    with refused, bulk.refusals_in_words():
        stage.db.execute("UPDATE signalbox.jobs SET status = 'pending', completed_at = NULL, send_at = now()")
