"""Due jobs are sent once, lost ones again, and those that a lane can't take wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from signalbox.errors import Unavailable
from signalbox.packs.job_type import Lane
from signalbox.tasks import dispatch_jobs
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import blocked_job, job, pending_job, queued_job, retried_job, statuses
from signalbox.testing.stage import Stage
from tests.support.at_once import at_once
from tests.support.lock_waits import wait_for_no_lock

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


@pytest.fixture
def now() -> datetime:
    """Return tomorrow: a run's time counts where it is later than the clock, so edges are exact."""
    return datetime.now(UTC).replace(microsecond=0) + DAY


def sent_to(lanes: AwsStandIn) -> dict[str, int]:
    """Return the jobs that were sent, with their delays."""
    return {message["job_id"]: message["delay"] for message in lanes.take()}


def test_with_no_jobs_nothing_is_sent(stage: Stage, lanes: AwsStandIn, now: datetime) -> None:
    assert stage.run("dispatch_jobs", now)["items"] == 0
    assert not lanes.sent


def test_a_job_whose_time_has_come_is_queued_and_sent(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime
) -> None:
    due = pending_job(db, now, lane="high", tenant="t1")
    stage.run("dispatch_jobs", now)

    found = job(db, due)
    assert (found["status"], found["sends"], found["send_at"]) == ("queued", 1, now + 2 * MINUTE)
    assert found["queued_at"] is not None
    assert lanes.take() == [{"lane": "high", "job_id": due, "delay": 0, "group": "t1"}]


def test_what_is_due_within_the_minute_waits_in_its_lane_for_its_time(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime
) -> None:
    soon, later = pending_job(db, now + 59.2 * SECOND), pending_job(db, now + 60 * SECOND)
    not_yet = pending_job(db, now + 61 * SECOND)
    assert stage.run("dispatch_jobs", now)["items"] == 2

    assert sent_to(lanes) == {soon: 60, later: 60}
    assert statuses(db, soon, later, not_yet) == ["pending"] * 3
    assert job(db, soon)["send_at"] == now + 59.2 * SECOND + 2 * MINUTE
    assert (job(db, not_yet)["send_at"], job(db, not_yet)["sends"]) == (now + 61 * SECOND, 0)


def test_job_waiting_in_its_lane_is_not_sent_again_by_next_runs(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime
) -> None:
    pending_job(db, now + 59 * SECOND)
    for minute in range(3):
        stage.run("dispatch_jobs", now + minute * MINUTE - SECOND)
    assert len(lanes.take()) == 1


def test_a_retry_whose_delayed_message_got_lost_is_sent_when_it_is_overdue(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime
) -> None:
    retry = retried_job(db, now - 2 * MINUTE)
    on_its_way = retried_job(db, now - 2 * MINUTE + SECOND)
    stage.run("dispatch_jobs", now)
    assert sent_to(lanes) == {retry: 0}
    assert statuses(db, retry, on_its_way) == ["queued", "pending"]


def test_jobs_that_wait_for_others_are_left_alone(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime
) -> None:
    first = queued_job(db, now + MINUTE)
    blocked_job(db, on=first)
    assert stage.run("dispatch_jobs", now)["items"] == 0
    assert not lanes.sent


def test_message_of_an_empty_lane_counts_as_lost_after_two_minutes(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime
) -> None:
    lost, in_time = queued_job(db, now), queued_job(db, now + SECOND)
    queued_at = job(db, lost)["queued_at"]
    assert stage.run("dispatch_jobs", now)["items"] == 1

    assert sent_to(lanes) == {lost: 0}
    assert (job(db, lost)["sends"], job(db, lost)["queued_at"]) == (1, queued_at)
    assert job(db, in_time)["sends"] == 0


def test_job_in_a_busy_lane_gets_its_second_message_later(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime
) -> None:
    waiting = queued_job(db, now)
    lanes.sent.append(("signalbox-normal", {"MessageBody": "{}"}))
    looks = []
    for _ in range(6):
        now = job(db, waiting)["send_at"]
        looks.append((stage.run("dispatch_jobs", now)["items"], job(db, waiting)["send_at"] - now))
    assert looks == [(0, MINUTE), (0, 2 * MINUTE), (0, 4 * MINUTE), (1, 8 * MINUTE), (1, 15 * MINUTE), (1, 15 * MINUTE)]


def test_a_long_queue_is_not_doubled(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_jobs, "BATCH", 2)
    monkeypatch.setattr(dispatch_jobs, "MOST_REPEATS", 4)
    for _ in range(9):
        queued_job(db, now, sends=5)
    lanes.sent.append(("signalbox-normal", {"MessageBody": "{}"}))
    assert stage.run("dispatch_jobs", now)["items"] == 4
    assert {row[0] for row in db.execute("SELECT send_at FROM signalbox.jobs")} == {now + 15 * MINUTE}


def test_a_lane_that_is_down_keeps_its_jobs_and_the_others_are_served(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime
) -> None:
    lost = queued_job(db, now - MINUTE, lane="low")
    due = pending_job(db, now - 2 * MINUTE, lane="low")
    soon = pending_job(db, now + 30 * SECOND, lane="low")
    others = [pending_job(db, now, lane="high"), queued_job(db, now, lane="normal"), pending_job(db, now, lane="heavy")]
    lanes.away.add("low")
    with pytest.raises(Unavailable, match="lane 'low'"):
        stage.run("dispatch_jobs", now)
    assert set(sent_to(lanes)) == set(others)
    assert statuses(db, lost, due, soon) == ["queued", "pending", "pending"]

    lanes.away.clear()
    stage.run("dispatch_jobs", now + SECOND)
    assert set(sent_to(lanes)) == {lost, due, soon}


def test_what_a_lane_refuses_after_it_was_queued_is_sent_later(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime
) -> None:
    due = pending_job(db, now)
    lanes.away.add("normal")
    with pytest.raises(Unavailable):
        stage.run("dispatch_jobs", now)
    assert statuses(db, due) == ["queued"]
    lanes.away.clear()
    assert stage.run("dispatch_jobs", now + MINUTE)["items"] == 0
    stage.run("dispatch_jobs", now + 2 * MINUTE)
    assert sent_to(lanes) == {due: 0}


def test_a_job_in_another_hand_is_passed_by(
    stage: Stage, dsn: str, db: psycopg.Connection, lanes: AwsStandIn, now: datetime
) -> None:
    held, free = pending_job(db, now), pending_job(db, now)
    wait_for_no_lock(db)
    with psycopg.connect(dsn) as other:
        other.execute("SELECT FROM signalbox.jobs WHERE id = %s FOR UPDATE", (held,))
        stage.run("dispatch_jobs", now)
    assert sent_to(lanes) == {free: 0}


def test_two_dispatchers_at_once_send_each_job_once(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_jobs, "BATCH", 7)
    jobs = [pending_job(db, now, lane=lane) for lane in Lane for _ in range(50)]
    other = stage.another()
    answers = at_once(lambda: stage.run("dispatch_jobs", now), lambda: other.run("dispatch_jobs", now + MINUTE))
    assert sum(answer["items"] for answer in answers) == len(jobs)
    assert sorted(message["job_id"] for message in lanes.take()) == sorted(jobs)


def test_a_budget_that_ends_leaves_the_rest_to_a_continuation(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime
) -> None:
    due = pending_job(db, now)
    answer = stage.run("dispatch_jobs", now, seconds=10)  # the margin alone
    assert (answer["items"], answer["more"]) == (0, True)
    stage.deliver(now)
    assert sent_to(lanes) == {due: 0}


def test_many_jobs_of_one_instant_all_go(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_jobs, "BATCH", 10)
    instant = now + 30 * SECOND
    jobs = {pending_job(db, instant) for _ in range(35)} | {pending_job(db, now) for _ in range(35)}
    for _ in range(15):
        queued_job(db, instant)  # between them, and none of ours
    assert stage.run("dispatch_jobs", now)["items"] == 70
    assert set(sent_to(lanes)) == jobs


def test_a_run_of_yesterday_counts_from_the_clock(stage: Stage, db: psycopg.Connection, lanes: AwsStandIn) -> None:
    """A slot is caught up late, or a rule fires late in its minute."""
    clock = datetime.now(UTC)
    due = pending_job(db, clock - SECOND)
    stage.run("dispatch_jobs", clock - DAY)
    assert sent_to(lanes) == {due: 0}
    assert job(db, due)["send_at"] > clock + MINUTE


def test_late_jobs_of_a_quiet_lane_bring_a_few_workers(stage: Stage, db: psycopg.Connection, lanes: AwsStandIn) -> None:
    """A dead worker may hold their messages. The workers that come take up the rest."""
    late = [queued_job(db, datetime.now(UTC) + MINUTE) for _ in range(12)]
    db.execute("UPDATE signalbox.jobs SET queued_at = now() - interval '31 s'")
    queued_job(db, datetime.now(UTC) + MINUTE)
    stage.run("dispatch_jobs", datetime.now(UTC))
    assert sent_to(lanes) == dict.fromkeys(late[:10], 0)


def test_late_jobs_of_a_lane_with_messages_are_left_to_it(
    stage: Stage, db: psycopg.Connection, lanes: AwsStandIn
) -> None:
    queued_job(db, datetime.now(UTC) + MINUTE)
    db.execute("UPDATE signalbox.jobs SET queued_at = now() - interval '31 s'")
    lanes.sent.append(
        ("signalbox-normal", {"MessageBody": '{"job_id": "another"}', "DelaySeconds": 0, "MessageGroupId": "-"})
    )
    stage.run("dispatch_jobs", datetime.now(UTC))
    assert list(sent_to(lanes)) == ["another"]
