"""Jobs whose worker vanished are rescued once, and never from a worker that finishes first."""

from __future__ import annotations

import uuid
from datetime import timedelta
from functools import partial

import psycopg
import pytest

from signalbox.jobs.end_record import EndRecord, to_array
from signalbox.jobs.verdict import COMPLETED
from signalbox.tasks import rescue_jobs
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import attempts, blocked_job, job, running_job, statuses
from signalbox.testing.stage import Stage
from signalbox.worker.lease import finish, renew
from tests.support.at_once import at_once
from tests.support.attempts import claim
from tests.support.dead_letters import letters

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
GONE = -SECOND


def rescue(stage: Stage) -> int:
    return int(stage.run("rescue_jobs", force=True)["items"])


def completion(db: psycopg.Connection, job_id: str) -> EndRecord:
    """Return what the worker that holds the lease would write."""
    token = str(job(db, job_id)["lease_token"])
    return EndRecord(job_id, token, COMPLETED)


def test_with_all_workers_alive_nothing_is_taken(stage: Stage, db: psycopg.Connection) -> None:
    at_work = running_job(db, lease=MINUTE)
    assert rescue(stage) == 0
    assert statuses(db, at_work) == ["running"]


def test_a_lease_counts_by_the_databases_clock_to_the_second(stage: Stage, db: psycopg.Connection) -> None:
    over, not_over = running_job(db, lease=-SECOND), running_job(db, lease=50 * SECOND)
    with db.transaction():  # one instant for both rows
        db.execute("UPDATE signalbox.jobs SET lease_expires_at = now() - interval '1 s' WHERE id = %s", (over,))
        db.execute("UPDATE signalbox.jobs SET lease_expires_at = now() + interval '50 s' WHERE id = %s", (not_over,))
    assert rescue(stage) == 1
    assert statuses(db, over, not_over) == ["pending", "running"]


def test_lease_that_was_renewed_meanwhile_is_not_taken(db: psycopg.Connection) -> None:
    """A frozen worker renews it between the sweep's two statements."""
    renewed = running_job(db, lease=MINUTE)
    assert db.execute(rescue_jobs.SQL["end"], {"ends": to_array([completion(db, renewed)])}).fetchall() == []
    assert statuses(db, renewed) == ["running"]


def test_job_with_attempts_left_is_tried_again_at_once(stage: Stage, db: psycopg.Connection, lanes: AwsStandIn) -> None:
    lost = running_job(db, lease=GONE, attempt=2, job_type="obey", lane="low", tenant="t1")
    assert rescue(stage) == 1

    found = job(db, lost)
    assert (found["status"], found["attempts"], found["lease_token"], found["health_status"]) == (
        "pending",
        2,
        None,
        None,
    )
    assert found["scheduled_for"] == found["updated_at"]
    assert found["send_at"] - found["scheduled_for"] == 2 * MINUTE
    assert found["error_details"]["type"] == "WorkerLost"
    [attempt] = attempts(db, lost)
    assert (attempt["status"], attempt["error_code"]) == ("lost", "WorkerLost")
    assert "'worker-1' vanished in attempt 2 of 3" in attempt["error_message"]
    assert lanes.take() == [{"lane": "low", "job_id": lost, "delay": 0, "group": "t1"}]


def test_lost_job_without_attempts_left_is_dead_lettered(stage: Stage, db: psycopg.Connection) -> None:
    lost = running_job(db, lease=GONE, attempt=3, tenant="t1")
    assert rescue(stage) == 1

    assert statuses(db, lost) == ["failed"]
    [letter] = letters(db)
    assert (letter["failure_reason"], letter["error_type"], letter["total_attempts"]) == ("lost", "WorkerLost", 3)
    assert (str(letter["original_job_id"]), letter["tenant"]) == (lost, "t1")
    assert [entry["status"] for entry in letter["execution_history"]] == ["lost"]


@pytest.mark.parametrize("is_of_this_attempt", [True, False])
def test_dead_letter_of_a_lost_worker_has_the_notes_of_its_attempt(
    stage: Stage, db: psycopg.Connection, is_of_this_attempt: bool
) -> None:
    lost = running_job(db, lease=MINUTE, attempt=3)
    renew(db, [{"id": lost, "token": str(job(db, lost)["lease_token"]), "notes": {"step": "upload"}}])
    if not is_of_this_attempt:
        db.execute("UPDATE signalbox.job_notes SET lease_token = gen_random_uuid()")
    db.execute("UPDATE signalbox.jobs SET lease_expires_at = now() - interval '1 s'")
    assert rescue(stage) == 1
    assert [letter["metadata"] for letter in letters(db)] == [{"step": "upload"} if is_of_this_attempt else None]


def test_room_that_a_lost_job_leaves_under_its_cap_is_filled(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn
) -> None:
    stage.operate("set_cap", kind="type", key="do_nothing", max_running=1)
    running_job(db, lease=GONE, attempt=3)
    held = stage.submit("do_nothing")
    claim(stage.db, held)
    assert job(db, held)["held_by"] == "type:do_nothing"
    rescue(stage)
    assert [message["job_id"] for message in lanes.take()] == [held]


def test_poison_of_one_type_is_one_kind_whichever_worker_it_killed(stage: Stage, db: psycopg.Connection) -> None:
    for worker in ("one/ab12", "other/77"):
        running_job(db, lease=GONE, attempt=3, worker_id=worker)
    running_job(db, lease=GONE, attempt=3, job_type="obey")
    rescue(stage)
    assert len({letter["fingerprint"] for letter in letters(db)}) == 2


def test_dependent_of_a_dead_lettered_job_fails_with_it(stage: Stage, db: psycopg.Connection) -> None:
    lost = running_job(db, lease=GONE, attempt=3)
    child = blocked_job(db, on=lost)
    rescue(stage)
    assert statuses(db, lost, child) == ["failed", "failed"]
    assert {letter["failure_reason"] for letter in letters(db)} == {
        "lost",
        "dependency",
    }


def test_dependent_that_only_needs_an_end_is_released_and_sent(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn
) -> None:
    lost = running_job(db, lease=GONE, attempt=3)
    child = blocked_job(db, on=lost)
    db.execute("UPDATE signalbox.job_dependencies SET on_failure = 'proceed'")
    rescue(stage)
    assert [message["job_id"] for message in lanes.take()] == [child]


@pytest.mark.parametrize("attempt", [1, 3])
def test_a_job_that_was_to_be_cancelled_is_cancelled(stage: Stage, db: psycopg.Connection, attempt: int) -> None:
    lost = running_job(db, lease=GONE, attempt=attempt)
    db.execute("UPDATE signalbox.jobs SET cancel_requested_at = now()")
    assert rescue(stage) == 1
    assert statuses(db, lost) == ["cancelled"]
    assert [row["status"] for row in attempts(db, lost)] == ["lost"]
    assert letters(db) == []


def test_lost_job_of_unknown_type_is_taken_back_too(stage: Stage, db: psycopg.Connection) -> None:
    again = running_job(db, lease=GONE, job_type="unheard_of")
    dead_lettered = running_job(db, lease=GONE, job_type="unheard_of", attempt=3)
    assert rescue(stage) == 2
    assert statuses(db, again, dead_lettered) == ["pending", "failed"]


def test_all_jobs_of_a_lost_worker_are_taken_back(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescue_jobs, "BATCH", 3)
    tokens = [uuid.uuid4(), uuid.uuid4()]
    lost = [running_job(db, lease=GONE, lease_token=tokens[place % 2]) for place in range(8)]
    assert rescue(stage) == 8
    assert set(statuses(db, *lost)) == {"pending"}
    assert rescue(stage) == 0


def test_one_job_that_cannot_be_changed_does_not_hold_the_others(stage: Stage, db: psycopg.Connection) -> None:
    token = uuid.uuid4()
    bad, *others = [running_job(db, lease=GONE, lease_token=token) for _ in range(4)]
    db.execute(
        psycopg.sql.SQL("ALTER TABLE signalbox.jobs ADD CONSTRAINT bad CHECK (id <> {} OR status = 'running')").format(
            psycopg.sql.Literal(bad)
        )
    )
    with pytest.raises(psycopg.errors.CheckViolation, match="bad"):
        rescue(stage)
    assert statuses(db, bad, *others) == ["running", "pending", "pending", "pending"]


def test_lanes_that_are_down_do_not_keep_jobs_from_being_taken_back(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn
) -> None:
    lost = running_job(db, lease=GONE)
    lanes.away.add("normal")
    assert rescue(stage) == 1
    found = job(db, lost)
    assert (found["status"], found["send_at"] is not None) == ("pending", True)


def test_a_late_worker_cannot_finish_a_rescued_job(stage: Stage, db: psycopg.Connection) -> None:
    lost = running_job(db, lease=GONE)
    end = completion(db, lost)
    rescue(stage)
    assert finish(db, [end]) == []
    assert statuses(db, lost) == ["pending"]


def test_of_a_finishing_worker_and_the_rescue_exactly_one_wins(stage: Stage, dsn: str, db: psycopg.Connection) -> None:
    wins = []
    for _ in range(10):
        lost = running_job(db, lease=GONE)
        end = completion(db, lost)
        with psycopg.connect(dsn, autocommit=True) as worker:
            finished, rescued = at_once(
                partial(finish, worker, [end]),
                lambda: rescue(stage),
            )
        [attempt] = attempts(db, lost)
        wins.append((len(finished) + rescued, job(db, lost)["status"], attempt["status"]))
    assert set(wins) <= {(1, "completed", "completed"), (1, "pending", "lost")}


def test_leases_about_to_run_out_are_waited_for(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their worker has missed a heartbeat. The next run would come a minute later."""
    waits: list[float] = []

    def pass_time(seconds: float) -> None:
        waits.append(seconds)
        db.execute("UPDATE signalbox.jobs SET lease_expires_at = lease_expires_at - interval '35 s'")

    monkeypatch.setattr("signalbox.tasks.rescue_jobs.time.sleep", pass_time)
    silent, alive = running_job(db, lease=30 * SECOND), running_job(db, lease=50 * SECOND)
    assert rescue(stage) == 1
    assert statuses(db, silent, alive) == ["pending", "running"]
    assert [round(seconds) for seconds in waits] == [30]


def test_a_worker_in_the_middle_of_finishing_keeps_its_job(stage: Stage, dsn: str, db: psycopg.Connection) -> None:
    lost = running_job(db, lease=GONE)
    end = completion(db, lost)
    with psycopg.connect(dsn) as worker:
        assert finish(worker, [end])
        rescued = rescue(stage)
        worker.commit()
    assert rescued == 0
    assert statuses(db, lost) == ["completed"]
    assert [row["status"] for row in attempts(db, lost)] == ["completed"]


def test_two_rescuers_at_once_take_each_job_back_once(stage: Stage, lanes: AwsStandIn, db: psycopg.Connection) -> None:
    lost = [running_job(db, lease=GONE, attempt=1 + place % 3) for place in range(60)]
    other = stage.another()
    rescued = at_once(
        lambda: rescue(stage),
        lambda: int(other.run("rescue_jobs", force=True, reference_time="2026-03-10T12:01:00Z")["items"]),
    )
    assert sum(rescued) == 60
    assert sorted(set(statuses(db, *lost))) == ["failed", "pending"]
    assert len(letters(db)) == 20
    assert all(len(attempts(db, job_id)) == 1 for job_id in lost)
