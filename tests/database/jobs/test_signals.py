"""A job waits for a signal without a worker, and receives it or its deadline, once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.jobs.end_record import EndRecord
from signalbox.jobs.verdict import of_answer
from signalbox.packs.job_type import JobType
from signalbox.packs.outcome import Completed, Deadline, Signal, Transient, Wait
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import count, select
from signalbox.testing.stage import Stage
from signalbox.worker.lease import finish
from tests.support.attempts import claim
from tests.support.jobs.act import ACTS
from tests.support.lock_waits import wait_until_blocked

MODULE, HOUR = "tests.support.jobs.act", timedelta(hours=1)
TYPE = JobType("act", "acts", MODULE)
TYPES = (TYPE, JobType("act_within", "acts within a transaction", MODULE, transactional=True),
         JobType("act_async", "acts on the loop", MODULE))  # fmt: skip


@pytest.fixture
def stage(stage: Stage) -> Stage:
    return stage.with_job_types(*TYPES)


def in_an_hour() -> datetime:
    return datetime.now(UTC) + HOUR


def submit(stage: Stage, act: Callable[[Any], Any], job_type: str = "act", **fields: Any) -> str:
    name = f"{act.__name__}-{id(act)}"
    ACTS[name] = act
    return stage.submit(job_type, payload={"name": name}, **fields)


def run(stage: Stage, act: Callable[[Any], Any], job_type: str = "act", **fields: Any) -> str:
    job_id = submit(stage, act, job_type, **fields)
    stage.work(job_id)
    return job_id


def approval(context: Any) -> Any:
    """Wait for an approval, and answer with what has come."""
    match context.received():
        case None:
            return Wait("approval:7", in_an_hour())
        case Signal(payload):
            return Completed(payload)
        case Deadline():
            return Completed("too late")


async def approval_async(context: Any) -> Any:
    received = await context.received()
    return Wait("approval:7", in_an_hour()) if received is None else Completed(received.payload)


def signal(db: psycopg.Connection[Any], payload: str = '{"ok": true}') -> tuple[bool, int]:
    [(is_first, woken)] = db.execute("SELECT * FROM signalbox.signal('approval:7', %s)", (payload,)).fetchall()
    return is_first, len(woken)


def pass_deadline(stage: Stage, job_id: str) -> None:
    stage.db.execute("UPDATE signalbox.job_waits SET until = now() - interval '1 s' WHERE job_id = %s", (job_id,))
    stage.make_due(job_id)


def result(stage: Stage, job_id: str) -> Any:
    assert stage.status(job_id) == "completed"
    return stage.job(job_id)["result"]


@pytest.mark.parametrize(
    ("job_type", "act"), [("act", approval), ("act_within", approval), ("act_async", approval_async)]
)
def test_signal_wakes_the_job_that_waits_and_brings_its_payload(
    stage: Stage, job_type: str, act: Callable[[Any], Any]
) -> None:
    job_id = run(stage, act, job_type)
    waiting = stage.job(job_id)
    assert (waiting["status"], waiting["attempts"], waiting["lease_token"]) == ("pending", 0, None)
    assert waiting["send_at"] == waiting["scheduled_for"] > datetime.now(UTC) + HOUR / 2
    assert signal(stage.db) == (True, 1)
    assert stage.job(job_id)["send_at"] <= datetime.now(UTC)
    stage.work(job_id)
    assert result(stage, job_id) == {"ok": True}


def test_signal_that_came_first_wakes_the_job_as_soon_as_it_waits(stage: Stage, lanes: AwsStandIn) -> None:
    assert signal(stage.db) == (True, 0)
    job_id = run(stage, approval)
    assert [message["job_id"] for message in lanes.take()] == [job_id]
    stage.work(job_id)
    assert result(stage, job_id) == {"ok": True}


def test_first_signal_wins(stage: Stage) -> None:
    job_id = run(stage, approval)
    assert [signal(stage.db, payload) for payload in ("1", "2")] == [(True, 1), (False, 0)]
    stage.work(job_id)
    assert result(stage, job_id) == 1


def test_deadline_is_received_where_no_signal_came_and_a_later_one_changes_nothing(stage: Stage) -> None:
    job_id = run(stage, approval)
    pass_deadline(stage, job_id)
    stage.work(job_id)
    assert result(stage, job_id) == "too late"
    assert signal(stage.db) == (True, 0)


def test_each_attempt_receives_the_same_whatever_comes_between(stage: Stage) -> None:
    received: list[Any] = []

    def stumble(context: Any) -> Any:
        received.append(context.received())
        if received[-1] is None:
            return Wait("approval:7", in_an_hour())
        raise Transient("after it was told")

    job_id = run(stage, stumble)
    pass_deadline(stage, job_id)
    stage.work(job_id)
    signal(stage.db)
    stage.make_due(job_id)
    stage.work(job_id)
    assert received == [None, Deadline(), Deadline()]


def test_job_that_is_tried_early_has_received_nothing_and_waits_on(stage: Stage) -> None:
    job_id = run(stage, approval)
    stage.operate("retry_jobs", ids=[job_id])
    stage.work(job_id)
    assert (stage.status(job_id), stage.job(job_id)["send_at"] > datetime.now(UTC)) == ("pending", True)
    assert signal(stage.db) == (True, 1)


def test_one_job_waits_for_several_signals_in_turn(stage: Stage) -> None:
    def ask_twice(context: Any) -> Any:
        received, asked = context.received(), context.cursor or []
        if received is not None and len(asked) == 2:
            return Completed([asked[1], received.payload])
        return Wait(f"key-{len(asked)}", in_an_hour(), [*asked, received and received.payload])

    job_id = run(stage, ask_twice)
    for number in range(2):
        stage.db.execute("SELECT signalbox.signal(%s, to_jsonb(%s::integer))", (f"key-{number}", number))
        stage.work(job_id)
    assert result(stage, job_id) == [0, 1]


def test_all_that_wait_for_a_key_are_woken(stage: Stage) -> None:
    jobs = [run(stage, approval) for _ in range(3)]
    assert signal(stage.db) == (True, 3)
    stage.work(*jobs)
    assert [result(stage, job_id) for job_id in jobs] == [{"ok": True}] * 3


def test_paused_job_is_due_once_it_is_resumed(stage: Stage) -> None:
    job_id = run(stage, approval)
    stage.operate("pause", ids=[job_id])
    assert signal(stage.db) == (True, 1)
    assert stage.status(job_id) == "paused"
    stage.operate("resume", ids=[job_id])
    assert stage.job(job_id)["send_at"] <= datetime.now(UTC) + timedelta(minutes=2)


def test_cancelled_job_is_not_woken(stage: Stage) -> None:
    job_id = run(stage, approval)
    stage.operate("cancel_jobs", ids=[job_id])
    assert (signal(stage.db), stage.status(job_id)) == ((True, 0), "cancelled")


def test_waiting_job_says_what_for(stage: Stage) -> None:
    job_id = run(stage, approval)
    found = stage.operate("explain_job", id=job_id)["explanation"]
    assert (found["reason"], found["key"]) == ("signal", "approval:7")
    assert "waits for the signal 'approval:7'" in found["text"]
    assert datetime.fromisoformat(found["until"]) == stage.job(job_id)["scheduled_for"]


def test_operator_sends_a_signal_and_the_job_is_sent_at_once(stage: Stage, lanes: AwsStandIn) -> None:
    job_id = run(stage, approval)
    lanes.take()
    answer = stage.operate("send_signal", key="approval:7", payload={"ok": 1}, by="jo", reason="signed")
    assert answer["signal"] == {"key": "approval:7", "is_first": True, "woken": [job_id]}
    assert [message["job_id"] for message in lanes.take()] == [job_id]
    [noted] = select(stage.db, "SELECT * FROM signalbox.audit_log WHERE action = 'signal.send'")
    assert (noted["actor"], noted["entity_id"], noted["detail"]) == ("jo", "approval:7", {"reason": "signed"})
    assert stage.operate("send_signal", key="approval:7")["signal"]["is_first"] is False


@pytest.mark.parametrize(
    ("key", "until", "words"),
    [
        ("", in_an_hour(), "a key that is not a text of 1 to 200"),
        ("x" * 201, in_an_hour(), "a key that is not a text of 1 to 200"),
        ("nul\0", in_an_hour(), "without NUL"),
        ("key", datetime(2026, 3, 10), "not a datetime with a zone"),  # noqa: DTZ001
        ("key", "tomorrow", "not a datetime with a zone"),
    ],
)
def test_wait_that_can_not_be_kept_fails_the_job_with_the_reason(
    stage: Stage, key: str, until: Any, words: str
) -> None:
    job_id = run(stage, lambda _: Wait(key, until))
    assert words in stage.dead_letter(job_id)["final_error_message"]


def test_old_signals_are_pruned_unless_a_job_waits(stage: Stage) -> None:
    run(stage, approval)
    stage.db.execute("SELECT signalbox.signal('old')")
    stage.db.execute("UPDATE signalbox.signals SET created_at = '2020-01-01', sent_at = sent_at - interval '1000 days'")
    stage.run("prune_jobs", datetime.now(UTC))
    assert [row["key"] for row in select(stage.db, "SELECT key FROM signalbox.signals")] == ["approval:7"]


# ---- races


def end_waiting(stage: Stage, db: psycopg.Connection[Any], job_id: str) -> None:
    """End a running job's attempt as its worker does."""
    record = EndRecord(job_id, str(stage.job(job_id)["lease_token"]), of_answer(TYPE, Wait("approval:7", in_an_hour())))
    finish(db, [record])


def test_signal_that_is_sent_while_the_job_begins_to_wait_is_not_missed(stage: Stage, other: Stage) -> None:
    job_id = submit(stage, approval)
    claim(stage.db, job_id)
    with ThreadPoolExecutor(1) as thread:
        with other.db.transaction():
            assert signal(other.db) == (True, 0)
            ended = thread.submit(end_waiting, stage, stage.db, job_id)
            wait_until_blocked(other.db)
        ended.result()
    assert stage.job(job_id)["send_at"] <= datetime.now(UTC)


def test_signal_waits_for_a_job_that_is_beginning_to_wait(stage: Stage, other: Stage) -> None:
    job_id = submit(stage, approval)
    claim(stage.db, job_id)
    with ThreadPoolExecutor(1) as thread:
        with other.db.transaction():
            end_waiting(stage, other.db, job_id)
            sent = thread.submit(signal, stage.db)
            wait_until_blocked(other.db)
        assert sent.result() == (True, 1)
    assert stage.job(job_id)["send_at"] <= datetime.now(UTC)


def test_two_signals_at_once_are_one(stage: Stage, other: Stage) -> None:
    job_id = run(stage, approval)
    with ThreadPoolExecutor(1) as thread:
        with other.db.transaction():
            assert signal(other.db, "1") == (True, 1)
            second = thread.submit(signal, stage.db, "2")
            wait_until_blocked(other.db)
        assert second.result() == (False, 0)
    stage.work(job_id)
    assert (result(stage, job_id), count(stage.db, "signalbox.signals")) == (1, 1)


def test_wait_of_a_worker_that_has_lost_the_job_is_none(stage: Stage) -> None:
    job_id = submit(stage, approval)
    claim(stage.db, job_id)
    record = EndRecord(
        job_id, "00000000-0000-7000-8000-000000000000", of_answer(TYPE, Wait("approval:7", in_an_hour()))
    )
    assert finish(stage.db, [record]) == []
    assert (stage.status(job_id), count(stage.db, "signalbox.job_waits")) == ("running", 0)
