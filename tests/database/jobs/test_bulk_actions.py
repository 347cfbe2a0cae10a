"""What operators order about jobs: cancelled, paused, resumed, tried now, one by one or by the hundred thousand."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.errors import IdRefused, JobRefused, JobTypeUnknown, JobUnknown, TransitionRefused
from signalbox.jobs.dependency import Dependency
from signalbox.operate import bulk
from signalbox.operate.filters import JobFilter
from signalbox.operate.listing import Preview, preview
from signalbox.submit.new_job import NewJob
from tests.support.order_desk import OrderDesk

HOUR = timedelta(hours=1)
NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def desk(db: psycopg.Connection) -> OrderDesk:
    return OrderDesk(db)


@pytest.fixture
def other(dsn: str) -> Iterator[OrderDesk]:
    """Somebody else, on a connection of their own."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield OrderDesk(connection)


# ---- cancel


def test_what_waits_is_cancelled_at_once_and_says_by_whom_and_why(desk: OrderDesk) -> None:
    queued, pending = desk.submit(), desk.submit(delay=HOUR)
    paused = desk.submit()
    desk.pause(paused)
    assert desk.cancel(queued, pending, paused).counts == {"cancelled": 3, "requested": 0}
    for job_id in (queued, pending, paused):
        job = desk.job(job_id)
        assert (job["status"], job["send_at"]) == ("cancelled", None)
        assert job["completed_at"] == job["updated_at"] == job["cancel_requested_at"]
        assert job["error_details"] == {"type": "Cancelled", "message": "cancelled by jo: because"}


def test_what_runs_is_asked_and_keeps_its_lease_until_its_worker_has_heard(desk: OrderDesk) -> None:
    job_id = desk.submit()
    lease = desk.begin(job_id)
    assert desk.cancel(job_id).counts == {"cancelled": 0, "requested": 1}
    assert desk.job(job_id)["cancel_requested_at"] is not None
    assert desk.cancel(job_id).counts == {"cancelled": 0, "requested": 0}, "it has been asked already"
    desk.end(lease, job_id, status="completed")
    assert desk.status(job_id) == "completed"


def test_a_running_job_that_would_be_tried_again_is_cancelled_instead(desk: OrderDesk) -> None:
    job_id = desk.submit()
    lease = desk.begin(job_id)
    desk.cancel(job_id)
    desk.end(lease, job_id, status="pending", execution="failed", delay=timedelta(seconds=1))
    assert desk.status(job_id) == "cancelled"


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_what_has_ended_is_refused_with_its_state(desk: OrderDesk, state: str) -> None:
    job_id = ended(desk, state)
    with pytest.raises(TransitionRefused, match=f"job {job_id} is {state}, which is for good"):
        desk.cancel(job_id)
    assert desk.audit()[-1:] == ([] if state != "cancelled" else desk.audit()[:1])


def test_of_several_the_ended_ones_stay_and_the_others_are_cancelled(desk: OrderDesk) -> None:
    over, waits = ended(desk, "completed"), desk.submit()
    assert desk.cancel(over, waits).counts == {"cancelled": 1, "requested": 0}
    assert (desk.status(over), desk.status(waits)) == ("completed", "cancelled")


def test_an_id_that_no_job_has_stops_the_order_before_it_begins(desk: OrderDesk) -> None:
    waits = desk.submit()
    with pytest.raises(JobUnknown, match=f"no job has the id {NOBODY}"):
        desk.cancel(waits, NOBODY)
    with pytest.raises(IdRefused, match="'12' is not the id of a job"):
        desk.cancel("12")
    assert desk.status(waits) == "queued"


def test_an_order_about_nothing_in_particular_is_refused(desk: OrderDesk) -> None:
    with pytest.raises(JobRefused, match="every job: name ids, or at least one filter"):
        desk.cancel(until=datetime.now(UTC))


def test_a_misspelt_type_is_refused_and_one_that_only_jobs_know_is_not(desk: OrderDesk) -> None:
    with pytest.raises(JobTypeUnknown, match="did you mean 'do_nothing'"):
        desk.cancel(job_type="do_nothin")
    job_id = desk.submit()
    desk.db.execute("UPDATE signalbox.jobs SET job_type = 'of_old_code'")
    assert desk.cancel(job_type="of_old_code").counts == {"cancelled": 1, "requested": 0}
    assert desk.status(job_id) == "cancelled"


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
    desk: OrderDesk, fields: dict[str, Any], given: dict[str, Any]
) -> None:
    wanted, other = desk.submit(**fields), desk.submit()
    desk.db.execute("CREATE TABLE IF NOT EXISTS notes (job_id uuid, subject text)")
    assert desk.cancel(**given).counts == {"cancelled": 1, "requested": 0}
    assert (desk.status(wanted), desk.status(other)) == ("cancelled", "queued")


def test_jobs_of_a_stretch_of_time_are_found_by_when_they_were_created(desk: OrderDesk) -> None:
    old, new = desk.submit(), desk.submit()
    desk.db.execute("UPDATE signalbox.jobs SET created_at = created_at - interval '1 day' WHERE id = %s", (old,))
    assert desk.cancel(since=datetime.now(UTC) - HOUR).counts == {"cancelled": 1, "requested": 0}
    assert (desk.status(old), desk.status(new)) == ("queued", "cancelled")


def test_jobs_of_a_schedule_are_found_by_its_name_or_id(desk: OrderDesk) -> None:
    [schedule_id] = desk.db.execute(
        "INSERT INTO signalbox.job_schedules (name, job_type, schedule_type, interval_ms) "
        "VALUES ('hourly', 'do_nothing', 'interval', 3600000) RETURNING id::text"
    ).fetchone() or [""]
    one, two, other = desk.submit(schedule_id=schedule_id), desk.submit(schedule_id=schedule_id), desk.submit()
    assert desk.cancel(schedule="hourly", until=None).counts == {"cancelled": 2, "requested": 0}
    assert [desk.status(job_id) for job_id in (one, two, other)] == ["cancelled", "cancelled", "queued"]


def test_what_depends_on_a_cancelled_job_ends_as_its_policy_says(desk: OrderDesk) -> None:
    parent = desk.submit()
    waits = {
        policy: desk.submit(depends_on=[Dependency(parent, on_failure=policy)])
        for policy in ("fail", "cancel", "proceed")
    }
    done = desk.cancel(parent)
    states = {policy: desk.status(job_id) for policy, job_id in waits.items()}
    assert states == {"fail": "failed", "cancel": "cancelled", "proceed": "pending"}
    assert done.due == [waits["proceed"]]


def test_a_group_whose_jobs_are_cancelled_with_each_other_counts_each_once(desk: OrderDesk) -> None:
    parent = desk.submit(group="night")
    child = desk.submit(group="night", depends_on=[Dependency(parent, on_failure="cancel")])
    assert desk.cancel(group="night").counts == {"cancelled": 2, "requested": 0}
    counts = desk.db.execute("SELECT total, completed, failed, cancelled FROM signalbox.job_groups").fetchone()
    assert counts == (2, 0, 0, 2)
    assert desk.status(child) == "cancelled"


def test_a_child_of_two_parents_that_fail_one_after_the_other_is_counted_once(desk: OrderDesk) -> None:
    parents = [desk.submit(), desk.submit()]
    desk.submit(group="night", depends_on=[Dependency(parent, on_failure="cancel") for parent in parents])
    for parent in parents:
        desk.cancel(parent)
    assert desk.db.execute("SELECT cancelled FROM signalbox.job_groups").fetchone() == (1,)


def test_many_are_cancelled_in_batches_none_of_which_holds_the_others_up(
    desk: OrderDesk, other: OrderDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signalbox.operate.listing.BATCH", 100)
    ids = desk.submit_all([NewJob(job_type="do_nothing", tenant="acme")] * 1050)
    with other.db.transaction():
        # A worker is at one of them and has not committed: the others need not wait for it.
        other.db.execute("SELECT FROM signalbox.jobs WHERE id = %s FOR UPDATE", (ids[500],))
        desk.seconds = 1
        done = desk.cancel(tenant="acme")
        assert (done.counts["cancelled"], done.more) == (1049, True)
    assert desk.status(ids[500]) == "queued"
    desk.seconds = 60
    assert desk.cancel(tenant="acme").counts == {"cancelled": 1, "requested": 0}
    assert sorted(desk.announced) == sorted(ids)


def test_bulk_action_leaves_locked_jobs_and_says_there_is_more(
    desk: OrderDesk, other: OrderDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "LOCK_TIMEOUT_MS", "20")
    free, locked = desk.submit(tenant="acme"), desk.submit(tenant="acme")
    with other.db.transaction():
        other.db.execute("SELECT FROM signalbox.jobs WHERE id = %s FOR UPDATE", (locked,))
        first, second = desk.cancel(tenant="acme"), desk.cancel(tenant="acme")
    assert [(one.counts["cancelled"], one.more) for one in (first, second)] == [(1, True), (0, True)]
    assert (desk.status(free), desk.status(locked)) == ("cancelled", "queued")


def test_jobs_that_come_while_an_order_is_carried_out_are_not_meant(desk: OrderDesk) -> None:
    before = desk.submit(tenant="acme")
    seen = look(desk, JobFilter(tenant="acme"))
    after = desk.submit(tenant="acme")
    desk.cancel(tenant="acme", until=datetime.fromisoformat(seen.as_of))
    assert (desk.status(before), desk.status(after)) == ("cancelled", "queued")


def test_a_preview_counts_and_shows_a_sample_and_changes_nothing(desk: OrderDesk) -> None:
    queued, pending = desk.submit(tenant="acme"), desk.submit(tenant="acme", delay=HOUR)
    seen = look(desk, JobFilter(tenant="acme"))
    assert seen.counts == {"pending": 1, "queued": 1}
    assert [row["id"] for row in seen.sample] == [pending, queued]
    assert desk.audit() == []


def test_every_order_is_in_the_audit_log_with_who_and_why(desk: OrderDesk) -> None:
    one = desk.submit(tenant="acme")
    desk.pause(one)
    desk.cancel(tenant="acme")
    (actor, action, kind, entity, detail), (_, bulk_action, bulk_kind, _, bulk_detail) = desk.audit()
    assert (actor, action, kind, entity, detail) == ("jo", "job.pause", "job", one, {"reason": "because"})
    assert (bulk_action, bulk_kind, bulk_detail["cancelled"]) == ("job.cancel", "jobs", 1)
    assert bulk_detail["selection"]["tenant"] == "acme"


# ---- races


def test_a_job_that_is_claimed_while_it_is_cancelled_is_asked_to_stop(desk: OrderDesk, other: OrderDesk) -> None:
    """The claim has not committed yet: the order must neither pass it by nor cancel it under its worker."""
    job_id = desk.submit()
    with ThreadPoolExecutor(1) as thread:
        with other.db.transaction():
            other.begin(job_id)
            order = thread.submit(desk.cancel, job_id)
            wait_until_somebody_waits(other)
        assert order.result().counts == {"cancelled": 0, "requested": 1}
    job = desk.job(job_id)
    assert (job["status"], job["cancel_requested_at"] is not None) == ("running", True)


def test_a_job_that_is_cancelled_while_it_is_claimed_is_not_run(desk: OrderDesk, other: OrderDesk) -> None:
    job_id = desk.submit()
    with ThreadPoolExecutor(1) as thread:
        with other.db.transaction():
            other.cancel(job_id)
            claim = thread.submit(desk.begin, job_id)
            wait_until_somebody_waits(other)
        claim.result()
    assert desk.status(job_id) == "cancelled"
    assert desk.db.execute("SELECT count(*) FROM signalbox.job_executions").fetchone() == (0,)


def test_a_pause_that_ends_while_a_claim_holds_its_jobs_back_lets_them_go(desk: OrderDesk, other: OrderDesk) -> None:
    job_id = desk.submit()
    desk.pause_all("type", "do_nothing")
    with ThreadPoolExecutor(1) as thread:
        with other.db.transaction():
            other.begin(job_id)  # makes it paused, and has not committed
            order = thread.submit(desk.resume_all, "type", "do_nothing")
            wait_until_somebody_waits(other)
        assert order.result().counts == {"resumed": 1, "held": 0}
    assert desk.status(job_id) == "pending"


def test_two_pauses_that_end_at_once_leave_nothing_held(desk: OrderDesk, other: OrderDesk) -> None:
    ids = [desk.submit(tenant="acme") for _ in range(20)]
    for kind, key in (("type", "do_nothing"), ("tenant", "acme")):
        desk.pause_all(kind, key)  # type: ignore[arg-type]
    desk.begin(*ids)
    assert {desk.status(job_id) for job_id in ids} == {"paused"}
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(desk.resume_all, "type", "do_nothing")
        second = threads.submit(other.resume_all, "tenant", "acme")
        first.result(), second.result()
    assert {desk.status(job_id) for job_id in ids} == {"pending"}


# ---- pause and resume


def test_a_paused_job_is_not_run_until_it_is_resumed(desk: OrderDesk) -> None:
    job_id = desk.submit()
    assert desk.pause(job_id).counts == {"paused": 1}
    desk.begin(job_id)
    job = desk.job(job_id)
    assert (job["status"], job["paused_by"], job["send_at"]) == ("paused", "jo", None)
    done = desk.resume(job_id)
    assert (done.counts, done.due) == ({"resumed": 1, "held": 0}, [job_id])
    desk.begin(job_id)
    assert desk.status(job_id) == "running"


def test_a_resumed_job_still_waits_for_its_time_and_for_its_parents(desk: OrderDesk) -> None:
    parent = desk.submit()
    later, child = desk.submit(delay=HOUR), desk.submit(depends_on=[Dependency(parent)])
    desk.pause(later, child)
    done = desk.resume(later, child)
    assert (done.counts["resumed"], done.due) == (2, [])
    assert desk.job(later)["send_at"] == desk.job(later)["scheduled_for"]
    assert (desk.status(child), desk.job(child)["send_at"]) == ("pending", None)


def test_what_another_pause_holds_stays_paused_until_that_ends_too(desk: OrderDesk) -> None:
    job_id = desk.submit(tenant="acme")
    desk.pause(job_id)
    desk.pause_all("tenant", "acme")
    assert desk.resume(job_id).counts == {"resumed": 0, "held": 1}
    assert desk.status(job_id) == "paused"
    assert desk.resume_all("tenant", "acme").counts == {"resumed": 1, "held": 0}
    assert desk.status(job_id) == "pending"


def test_the_end_of_a_pause_of_many_does_not_end_that_of_one(desk: OrderDesk) -> None:
    alone, held = desk.submit(), desk.submit()
    desk.pause(alone)
    desk.pause_all("type", "do_nothing")
    desk.begin(held)
    assert desk.resume_all("type", "do_nothing").counts == {"resumed": 1, "held": 1}
    assert (desk.status(alone), desk.status(held)) == ("paused", "pending")


@pytest.mark.parametrize("state", ["running", "completed", "failed", "cancelled", "paused"])
def test_what_does_not_wait_can_not_be_paused(desk: OrderDesk, state: str) -> None:
    with pytest.raises(TransitionRefused, match=f"is {state} and can't be paused"):
        desk.pause(ended(desk, state))


def test_what_is_not_paused_can_not_be_resumed(desk: OrderDesk) -> None:
    with pytest.raises(TransitionRefused, match="is queued and can't be resumed"):
        desk.resume(desk.submit())


def test_of_many_resumed_jobs_only_the_first_are_sent_at_once(desk: OrderDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signalbox.operate.listing.BATCH", 10)
    monkeypatch.setattr(bulk, "SENT_AT_ONCE", 10)
    desk.submit_all([NewJob(job_type="do_nothing", tenant="acme")] * 30)
    desk.pause(tenant="acme")
    done = desk.resume(tenant="acme")
    due = desk.db.execute("SELECT id::text FROM signalbox.jobs WHERE send_at <= now()").fetchall()
    assert (done.counts["resumed"], len(done.due), len(due)) == (30, 10, 20)
    assert set(done.due).isdisjoint(id_ for (id_,) in due)


# ---- retry


def test_a_job_that_waits_for_its_time_is_tried_now(desk: OrderDesk) -> None:
    job_id = desk.submit(delay=HOUR)
    desk.begin(job_id)
    assert desk.status(job_id) == "pending"
    done = desk.retry(job_id)
    assert (done.counts, done.due) == ({"hastened": 1}, [job_id])
    desk.begin(job_id)
    assert desk.status(job_id) == "running"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("queued", "on its way"),
        ("running", "being worked on"),
        ("paused", "signalbox resume"),
        ("failed", "signalbox redrive"),
        ("completed", "submit another"),
        ("cancelled", "submit another"),
    ],
)
def test_a_retry_of_what_does_not_wait_says_what_to_do_instead(desk: OrderDesk, state: str, words: str) -> None:
    with pytest.raises(TransitionRefused, match=f"is {state}.*{words}"):
        desk.retry(ended(desk, state))


def test_a_retry_does_not_overtake_the_parents(desk: OrderDesk) -> None:
    child = desk.submit(depends_on=[Dependency(desk.submit())])
    with pytest.raises(TransitionRefused, match="waits for 1 other jobs"):
        desk.retry(child)


def test_a_transition_that_the_database_refuses_reads_as_an_error_of_ours(desk: OrderDesk) -> None:
    job_id = ended(desk, "completed")
    refused = pytest.raises(TransitionRefused, match=f"job {job_id} is completed: it can't become pending")
    with refused, bulk.refusals_in_words():
        desk.db.execute("UPDATE signalbox.jobs SET status = 'pending', completed_at = NULL, send_at = now()")


def ended(desk: OrderDesk, state: str) -> str:
    """A job in that state."""
    job_id = desk.submit()
    if state == "failed":
        desk.fail(job_id)
    elif state in ("running", "completed"):
        lease = desk.begin(job_id)
        if state == "completed":
            desk.end(lease, job_id, status="completed")
    elif state != "queued":
        {"cancelled": desk.cancel, "paused": desk.pause}[state](job_id)
    assert desk.status(job_id) == state
    return job_id


def look(desk: OrderDesk, selection: JobFilter) -> Preview:
    return preview(desk.db, desk.job_types, selection)


def wait_until_somebody_waits(desk: OrderDesk) -> None:
    """Looks until another session of the database waits for a lock."""
    statement = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    for _ in range(10_000):
        desk.db.execute("SELECT pg_stat_clear_snapshot()")
        if desk.db.execute(statement).fetchone() != (0,):
            return
    raise AssertionError("nobody waits")
