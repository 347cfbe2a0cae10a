"""The dead_letter function: what comes out of the dead-letter queues is recorded once, or left to those who keep it."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from signalbox.dead_letters.dlq_message import LONGEST_BODY
from signalbox.errors import PayloadRefused
from signalbox.jobs.dependency import Dependency
from tests.support.dead_messages import (
    EVENT,
    PRUNING,
    consume,
    failed_invocation,
    lane_message,
    message,
    undelivered,
)
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.letters import Letters
from tests.support.lost_session import lose_session
from tests.support.stage import Stage


def given_up(job_id: str, lane: str = "normal") -> dict[str, Any]:
    return lane_message({"job_id": job_id, "job_type": "obey"}, lane)


def one_letter(letters: Letters) -> dict[str, Any]:
    [row] = letters.all()
    return row


# A job's message


def test_a_job_that_still_waits_is_sent_again_and_not_buried(letters: Letters) -> None:
    job_id = letters.workshop.obey("complete")
    letters.db.execute("UPDATE signalbox.jobs SET send_at = now() + interval '1 hour'")
    assert consume(letters.workshop.engine, given_up(job_id)) == []
    job = letters.workshop.job(job_id)
    assert (job["status"], letters.all()) == ("queued", [])
    assert job["send_at"] <= datetime.now(UTC)


def test_a_retry_is_not_sent_before_its_time(letters: Letters) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    job_id = letters.workshop.obey("complete", at=at)
    consume(letters.workshop.engine, given_up(job_id))
    assert letters.workshop.job(job_id)["send_at"] == at


def waits_for_another(letters: Letters) -> str:
    return letters.workshop.obey("complete", depends_on=[Dependency(letters.workshop.obey("complete"))])


def is_paused(letters: Letters) -> str:
    job_id = letters.workshop.obey("complete")
    letters.db.execute("UPDATE signalbox.jobs SET status = 'paused', send_at = NULL")
    return job_id


def runs(letters: Letters, lease: str = "1 hour") -> str:
    job_id = letters.workshop.obey("complete")
    letters.db.execute(
        "SELECT signalbox.claim_jobs(ARRAY[%s::uuid], gen_random_uuid(), 'w', 'n', %s::interval)", (job_id, lease)
    )
    return job_id


def runs_without_a_lease(letters: Letters) -> str:
    return runs(letters, "-1 hour")


def has_ended(letters: Letters) -> str:
    job_id = letters.workshop.obey("complete")
    letters.workshop.work(job_id)
    return job_id


@pytest.mark.parametrize("make", [waits_for_another, is_paused, runs, runs_without_a_lease, has_ended])
def test_every_other_job_is_left_as_it_is(letters: Letters, make: Callable[[Letters], str]) -> None:
    job_id = make(letters)
    before = letters.workshop.job(job_id)
    assert consume(letters.workshop.engine, given_up(job_id)) == []
    assert letters.workshop.job(job_id) == before
    assert letters.all() == []


def test_a_failed_job_keeps_its_one_dead_letter(letters: Letters) -> None:
    job_id = letters.fail()
    consume(letters.workshop.engine, given_up(job_id))
    assert one_letter(letters)["source"] == "job"


def test_a_message_of_no_job_is_buried(letters: Letters) -> None:
    job_id = str(uuid4())
    record = given_up(job_id, "high")
    assert consume(letters.workshop.engine, record) == []
    row = one_letter(letters)
    assert (row["source"], row["failure_reason"], row["error_type"]) == ("message", "unreadable", "JobUnknown")
    assert (row["job_type"], row["total_attempts"], row["original_job_id"]) == ("obey", 3, None)
    assert json.loads(row["payload"]) == {"job_id": job_id, "job_type": "obey"}
    assert row["metadata"] == {
        "queue": "signalbox-high-dlq",
        "message_id": record["messageId"],
        "receive_count": 3,
        "group": "acme",
        "job_id": job_id,
        "characters": len(record["body"]),
    }


# What nobody can read

UNREADABLE = {
    "empty": "",
    "no JSON": "hello",
    "a list": "[1, 2]",
    "null": "null",
    "another shape": '{"task": "prune_history"}',
    "no id": '{"job_id": "seven", "job_type": "obey"}',
    "NUL, plain": '{"job_id": "\0"}',
    "NUL, escaped": r'{"job_id": "\u0000", "job_type": "a\u0000b"}',
    "half a surrogate pair, escaped": r'{"job_type": "\ud800"}',
    "half a surrogate pair, plain": '{"job_type": "\ud800"}',
    "not a number": '{"job_id": NaN, "n": 1e999}',
    "nested without end": "[" * 200_000,
    "longer than is kept": "x" * (LONGEST_BODY + 5),
    "a record that is none": '{"requestContext": 7, "requestPayload": {}}',
    "a type that is none": '{"job_type": {"a": 1}}',
    "a number without end": '{"job_id": ' + "9" * 5000 + "}",
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_nobody_can_read_is_kept_as_text(letters: Letters, body: str) -> None:
    assert consume(letters.workshop.engine, lane_message(body)) == []
    row = one_letter(letters)
    assert (row["source"], row["failure_reason"]) == ("message", "unreadable")
    assert isinstance(row["payload"], str)
    assert row["metadata"]["characters"] == len(body)
    assert len(row["payload"]) == min(len(body), LONGEST_BODY)


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_the_worker_leaves_the_same_ones_to_their_queue(letters: Letters, body: str) -> None:
    job_id = letters.workshop.obey("complete")
    answer = letters.workshop.deliver([body, json.dumps({"job_id": job_id})])
    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-0"}]}
    assert letters.workshop.job(job_id)["status"] == "completed"


@pytest.mark.parametrize("event", [None, {}, {"Records": None}, {"Records": {}}, []])
def test_an_event_that_is_none_of_sqs_is_refused(letters: Letters, event: object) -> None:
    with pytest.raises(PayloadRefused, match="SQS"):
        letters.workshop.engine.consume_dead_letters(event, Stage.invocation())


# Rules and invocations


def test_an_event_that_a_rule_could_not_deliver(letters: Letters) -> None:
    assert consume(letters.workshop.engine, undelivered()) == []
    row = one_letter(letters)
    assert (row["source"], row["failure_reason"], row["job_type"]) == ("invocation", "undelivered", "prune_history")
    assert (row["error_type"], row["final_error_message"], row["total_attempts"]) == ("THROTTLING", "Rate exceeded", 5)
    assert row["payload"] == EVENT
    assert row["metadata"]["function"] == "signalbox-archiver"
    assert row["metadata"]["input"] == PRUNING
    assert row["metadata"]["exhausted"] == "MaximumRetryAttempts"


def test_an_invocation_that_failed_each_time(letters: Letters) -> None:
    assert consume(letters.workshop.engine, failed_invocation()) == []
    row = one_letter(letters)
    assert (row["source"], row["failure_reason"], row["job_type"]) == ("invocation", "undelivered", "prune_history")
    assert (row["error_type"], row["final_error_message"], row["total_attempts"]) == ("RuntimeError", "no", 3)
    assert (row["final_error_stack"], row["payload"]) == ("one\ntwo\n", PRUNING)
    assert (row["metadata"]["function"], row["metadata"]["request_id"]) == ("signalbox-archiver", "request-1")


def test_an_invocation_that_never_began(letters: Letters) -> None:
    context = {"functionArn": "arn:aws:lambda:us-east-1:123456789012:function:signalbox-poller"}
    record = failed_invocation(
        requestContext=context | {"condition": "EventAgeExceeded"}, responsePayload=None, responseContext=None
    )
    consume(letters.workshop.engine, record)
    row = one_letter(letters)
    assert (row["error_type"], row["total_attempts"]) == ("EventAgeExceeded", 0)


def without_database(task: str = "prune_history", **fields: Any) -> dict[str, Any]:
    """What is left of a rule's event of half an hour ago, for which the database was away each time."""
    told = {"errorType": "DatabaseUnavailable", "errorMessage": "the database can't be reached"}
    fired = datetime.now(UTC) - timedelta(minutes=30)
    return failed_invocation(payload={"task": task, "scheduled_time": fired.isoformat()} | fields, responsePayload=told)


def schedule(letters: Letters, task: str = "prune_history", known_for: str = "30 days") -> None:
    letters.db.execute(
        "INSERT INTO signalbox.task_schedules VALUES (%s, 'cron(* * * * ? *)', now() - %s::interval)", (task, known_for)
    )


def test_a_slot_that_found_no_database_is_left_to_reconcile_slots(letters: Letters) -> None:
    schedule(letters)
    assert consume(letters.workshop.engine, without_database(), without_database()) == []
    assert letters.all() == []


@pytest.mark.parametrize(
    "fields", [{"params": {}}, {"force": True}, {"scheduled_time": "soon"}, {"scheduled_time": "2026-01-01T00:00:00Z"}]
)
def test_what_nobody_would_find_missed_is_buried_though_only_the_database_was_away(
    letters: Letters, fields: dict[str, Any]
) -> None:
    schedule(letters)
    assert consume(letters.workshop.engine, without_database(**fields)) == []
    assert one_letter(letters)["error_type"] == "DatabaseUnavailable"


def test_a_task_that_is_not_looked_after_is_buried_though_only_the_database_was_away(letters: Letters) -> None:
    schedule(letters, "sweep_runs", known_for="1 minute")
    consume(letters.workshop.engine, without_database(), without_database("sweep_runs"))
    assert len(letters.all()) == 2


def test_a_slot_that_has_failed_by_itself_too_is_buried(letters: Letters) -> None:
    schedule(letters)
    record = without_database()
    slot = json.loads(record["body"])["requestPayload"]["scheduled_time"]
    letters.db.execute(
        "INSERT INTO signalbox.job_history"
        " (job_type, slot, reference_time, trigger, status, worker_id, started_at, finished_at, error, ran)"
        " SELECT 'prune_history', date_trunc('minute', %(slot)s::timestamptz), now(), 'schedule', 'failed', 'w', now(),"
        " now(), '{}', true",
        {"slot": slot},
    )
    consume(letters.workshop.engine, record)
    assert one_letter(letters)["job_type"] == "prune_history"


def test_one_that_is_no_task_bears_its_function_s_name(letters: Letters) -> None:
    consume(letters.workshop.engine, failed_invocation("signalbox-api", [1, 2]))
    row = one_letter(letters)
    assert (row["job_type"], row["payload"]) == ("signalbox-api", [1, 2])


@pytest.mark.parametrize(
    "fields",
    [
        {"requestContext": {}},
        {"requestContext": {"functionArn": 7, "condition": [], "approximateInvokeCount": -1}},
        {"requestContext": {"approximateInvokeCount": 10**30, "functionArn": "nonsense"}},
        {"responsePayload": "a text"},
        {"responsePayload": {"errorType": "\0", "errorMessage": None, "stackTrace": "text"}},
        {"responsePayload": {"errorType": "x" * 5000, "errorMessage": "y" * 5000, "stackTrace": [None, 7]}},
        {"requestPayload": {"task": 7, "\0": "\0", "half": "\ud800"}},
        {"requestPayload": None, "payload": 0},
    ],
    ids=str,
)
def test_a_record_that_is_odd_is_recorded_all_the_same(letters: Letters, fields: dict[str, Any]) -> None:
    assert consume(letters.workshop.engine, failed_invocation(**fields)) == []
    assert len(letters.all()) == 1


def test_a_rule_s_event_that_is_odd_is_recorded_all_the_same(letters: Letters) -> None:
    odd = [
        undelivered() | {"body": "no JSON \0"},
        undelivered(RETRY_ATTEMPTS="many", TARGET_ARN="none", ERROR_CODE="\0" * 500, ERROR_MESSAGE="x" * 9000),
        message(EVENT, RULE_ARN=""),
        {"messageId": "only", "body": None},
        {"messageId": "binary", "body": "{}", "messageAttributes": {"RULE_ARN": {"binaryValue": "eA=="}}},
    ]
    assert consume(letters.workshop.engine, *odd) == []
    assert len(letters.all()) == len(odd)


def test_failures_of_one_kind_share_a_fingerprint(letters: Letters) -> None:
    consume(letters.workshop.engine, undelivered(), undelivered(), undelivered("sweep_runs"), failed_invocation())
    assert [kind["count"] for kind in kinds(letters)] == [2, 1, 1]


def kinds(letters: Letters) -> list[dict[str, Any]]:
    statement = "SELECT fingerprint, count(*) FROM signalbox.dead_letter_jobs GROUP BY 1 ORDER BY 2 DESC"
    return letters.rows(statement)


# Once, and never not at all


def test_a_second_delivery_makes_no_second_row(letters: Letters) -> None:
    for record in (lane_message("garbage"), undelivered(), failed_invocation()):
        for _ in range(2):
            assert consume(letters.workshop.engine, record, record) == []
    assert len(letters.all()) == 3


def test_a_second_delivery_does_not_undo_a_triage(letters: Letters) -> None:
    record = undelivered()
    consume(letters.workshop.engine, record)
    letters.triage("resolved", str(one_letter(letters)["id"]))
    consume(letters.workshop.engine, record)
    assert one_letter(letters)["status"] == "resolved"


def test_a_kind_that_returns_after_it_was_resolved_is_open_again(letters: Letters) -> None:
    consume(letters.workshop.engine, undelivered())
    first = str(one_letter(letters)["id"])
    letters.triage("resolved", first)
    consume(letters.workshop.engine, undelivered())
    assert [row["status"] for row in letters.all()] == ["pending", "pending"]
    assert letters.row(first)["reopened_at"] is not None


def test_one_that_can_t_be_recorded_comes_back_and_the_others_don_t(letters: Letters) -> None:
    letters.db.execute(
        "ALTER TABLE signalbox.dead_letter_jobs ADD CONSTRAINT no_pruning CHECK (job_type <> 'prune_history')"
    )
    bad, good = undelivered(), undelivered("sweep_runs")
    assert consume(letters.workshop.engine, bad, good) == [bad["messageId"]]
    assert one_letter(letters)["job_type"] == "sweep_runs"


def test_where_none_can_be_recorded_the_invocation_fails(letters: Letters) -> None:
    letters.db.execute("ALTER TABLE signalbox.dead_letter_jobs ADD CONSTRAINT full_up CHECK (false) NOT VALID")
    with pytest.raises(psycopg.errors.CheckViolation):
        consume(letters.workshop.engine, undelivered(), lane_message("garbage"))


def test_a_lost_connection_costs_nothing(letters: Letters, dsn: str) -> None:
    consume(letters.workshop.engine, undelivered())
    lose_session(dsn)
    assert consume(letters.workshop.engine, undelivered()) == []
    assert len(letters.all()) == 2


def test_two_deliveries_at_once_make_one_row(letters: Letters, dsn: str, invokes: InvokeRecorder) -> None:
    records = [lane_message("garbage"), undelivered(), failed_invocation()]

    def work(_: int) -> list[str]:
        with Stage(dsn, invokes) as stage:
            return consume(stage.engine, *records)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(4))) == [[]] * 4
    assert len(letters.all()) == 3
