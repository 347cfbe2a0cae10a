"""The dead_letter function records each message once, or leaves it to those who keep it."""

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
from signalbox.dead_letters.letters import triage
from signalbox.errors import PayloadRefused
from signalbox.jobs.dependency import Dependency
from signalbox.operate.filters import DeadLetterFilter
from signalbox.testing.rows import select
from signalbox.testing.sqs_events import (
    EVENT,
    PRUNING,
    failed_invocation,
    lane_message,
    message,
    sqs_event,
    undelivered,
)
from signalbox.testing.stage import Stage
from tests.support.dead_letters import fail, letter, letters
from tests.support.jobs import obeying
from tests.support.lost_session import lose_session


def given_up(job_id: str, lane: str = "normal") -> dict[str, Any]:
    return lane_message({"job_id": job_id, "job_type": "obey"}, lane)


def one_letter(stage: Stage) -> dict[str, Any]:
    [row] = letters(stage.db)
    return row


# A job's message


def test_waiting_job_is_sent_again_and_not_dead_lettered(stage: Stage) -> None:
    job_id = stage.submit(obeying("complete"))
    stage.db.execute("UPDATE signalbox.jobs SET send_at = now() + interval '1 hour'")
    assert stage.consume(given_up(job_id)) == []
    job = stage.job(job_id)
    assert (job["status"], letters(stage.db)) == ("queued", [])
    assert job["send_at"] <= datetime.now(UTC)


def test_a_retry_is_not_sent_before_its_time(stage: Stage) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    job_id = stage.submit(obeying("complete", at=at))
    stage.consume(given_up(job_id))
    assert stage.job(job_id)["send_at"] == at


def waits_for_another(stage: Stage) -> str:
    return stage.submit(obeying("complete", depends_on=[Dependency(stage.submit(obeying("complete")))]))


def is_paused(stage: Stage) -> str:
    job_id = stage.submit(obeying("complete"))
    stage.db.execute("UPDATE signalbox.jobs SET status = 'paused', send_at = NULL")
    return job_id


def runs(stage: Stage, lease: str = "1 hour") -> str:
    job_id = stage.submit(obeying("complete"))
    stage.db.execute(
        "SELECT signalbox.claim_jobs(ARRAY[%s::uuid], gen_random_uuid(), 'w', 'n', %s::interval)", (job_id, lease)
    )
    return job_id


def runs_without_a_lease(stage: Stage) -> str:
    return runs(stage, "-1 hour")


def has_ended(stage: Stage) -> str:
    job_id = stage.submit(obeying("complete"))
    stage.work(job_id)
    return job_id


@pytest.mark.parametrize("make", [waits_for_another, is_paused, runs, runs_without_a_lease, has_ended])
def test_every_other_job_is_left_as_it_is(stage: Stage, make: Callable[[Stage], str]) -> None:
    job_id = make(stage)
    before = stage.job(job_id)
    assert stage.consume(given_up(job_id)) == []
    assert stage.job(job_id) == before
    assert letters(stage.db) == []


def test_a_failed_job_keeps_its_one_dead_letter(stage: Stage) -> None:
    job_id = fail(stage)
    stage.consume(given_up(job_id))
    assert one_letter(stage)["source"] == "job"


def test_message_without_a_job_is_dead_lettered(stage: Stage) -> None:
    job_id = str(uuid4())
    record = given_up(job_id, "high")
    assert stage.consume(record) == []
    row = one_letter(stage)
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
def test_what_nobody_can_read_is_kept_as_text(stage: Stage, body: str) -> None:
    assert stage.consume(lane_message(body)) == []
    row = one_letter(stage)
    assert (row["source"], row["failure_reason"]) == ("message", "unreadable")
    assert isinstance(row["payload"], str)
    assert row["metadata"]["characters"] == len(body)
    assert len(row["payload"]) == min(len(body), LONGEST_BODY)


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_the_worker_leaves_the_same_ones_to_their_queue(stage: Stage, body: str) -> None:
    job_id = stage.submit(obeying("complete"))
    event = sqs_event([body, json.dumps({"job_id": job_id})])
    unread = event["Records"][0]["messageId"]
    assert stage.work(event=event) == {"batchItemFailures": [{"itemIdentifier": unread}]}
    assert stage.job(job_id)["status"] == "completed"


@pytest.mark.parametrize("event", [None, {}, {"Records": None}, {"Records": {}}, []])
def test_an_event_that_is_none_of_sqs_is_refused(stage: Stage, event: object) -> None:
    with pytest.raises(PayloadRefused, match="SQS"):
        stage.app.consume_dead_letters(event, Stage.invocation())


# Rules and invocations


def test_an_event_that_a_rule_could_not_deliver(stage: Stage) -> None:
    assert stage.consume(undelivered()) == []
    row = one_letter(stage)
    assert (row["source"], row["failure_reason"], row["job_type"]) == ("invocation", "undelivered", "prune_history")
    assert (row["error_type"], row["final_error_message"], row["total_attempts"]) == ("THROTTLING", "Rate exceeded", 5)
    assert row["payload"] == EVENT
    assert row["metadata"]["function"] == "signalbox-archiver"
    assert row["metadata"]["input"] == PRUNING
    assert row["metadata"]["exhausted"] == "MaximumRetryAttempts"


def test_an_invocation_that_failed_each_time(stage: Stage) -> None:
    assert stage.consume(failed_invocation()) == []
    row = one_letter(stage)
    assert (row["source"], row["failure_reason"], row["job_type"]) == ("invocation", "undelivered", "prune_history")
    assert (row["error_type"], row["final_error_message"], row["total_attempts"]) == ("RuntimeError", "no", 3)
    assert (row["final_error_stack"], row["payload"]) == ("one\ntwo\n", PRUNING)
    assert (row["metadata"]["function"], row["metadata"]["request_id"]) == ("signalbox-archiver", "request-1")


def test_an_invocation_that_never_began(stage: Stage) -> None:
    context = {"functionArn": "arn:aws:lambda:us-east-1:123456789012:function:signalbox-poller"}
    record = failed_invocation(
        requestContext=context | {"condition": "EventAgeExceeded"}, responsePayload=None, responseContext=None
    )
    stage.consume(record)
    row = one_letter(stage)
    assert (row["error_type"], row["total_attempts"]) == ("EventAgeExceeded", 0)


def without_database(task: str = "prune_history", **fields: Any) -> dict[str, Any]:
    """Return the record of a rule's event, 30 minutes old, that never reached the database."""
    told = {"errorType": "DatabaseUnavailable", "errorMessage": "the database can't be reached"}
    fired = datetime.now(UTC) - timedelta(minutes=30)
    return failed_invocation(payload={"task": task, "scheduled_time": fired.isoformat()} | fields, responsePayload=told)


def schedule(stage: Stage, task: str = "prune_history", known_for: str = "30 days") -> None:
    stage.db.execute(
        "INSERT INTO signalbox.task_schedules VALUES (%s, 'cron(* * * * ? *)', now() - %s::interval)", (task, known_for)
    )


def test_a_slot_that_found_no_database_is_left_to_reconcile_slots(stage: Stage) -> None:
    schedule(stage)
    assert stage.consume(without_database(), without_database()) == []
    assert letters(stage.db) == []


@pytest.mark.parametrize(
    "fields", [{"params": {}}, {"force": True}, {"scheduled_time": "soon"}, {"scheduled_time": "2026-01-01T00:00:00Z"}]
)
def test_event_without_a_slot_is_dead_lettered_after_a_database_outage(stage: Stage, fields: dict[str, Any]) -> None:
    schedule(stage)
    assert stage.consume(without_database(**fields)) == []
    assert one_letter(stage)["error_type"] == "DatabaseUnavailable"


def test_slot_that_reconcile_slots_ignores_is_dead_lettered_despite_missing_database(stage: Stage) -> None:
    schedule(stage, "sweep_runs", known_for="1 minute")
    stage.consume(without_database(), without_database("sweep_runs"))
    assert len(letters(stage.db)) == 2


def test_slot_that_also_failed_by_itself_is_dead_lettered(stage: Stage) -> None:
    schedule(stage)
    record = without_database()
    slot = json.loads(record["body"])["requestPayload"]["scheduled_time"]
    stage.db.execute(
        "INSERT INTO signalbox.job_history"
        " (job_type, slot, reference_time, trigger, status, worker_id, started_at, finished_at, error, ran)"
        " SELECT 'prune_history', date_trunc('minute', %(slot)s::timestamptz), now(), 'schedule', 'failed', 'w', now(),"
        " now(), '{}', true",
        {"slot": slot},
    )
    stage.consume(record)
    assert one_letter(stage)["job_type"] == "prune_history"


def test_one_that_is_no_task_bears_its_function_s_name(stage: Stage) -> None:
    stage.consume(failed_invocation("signalbox-api", [1, 2]))
    row = one_letter(stage)
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
        {"requestPayload": {"task": 7, "\0": "\0", "half": "\ud800", "list": ["\0", "\ud800"]}},
        {"requestPayload": None, "payload": 0},
    ],
    ids=str,
)
def test_a_record_that_is_odd_is_recorded_all_the_same(stage: Stage, fields: dict[str, Any]) -> None:
    assert stage.consume(failed_invocation(**fields)) == []
    assert len(letters(stage.db)) == 1


def test_a_rule_s_event_that_is_odd_is_recorded_all_the_same(stage: Stage) -> None:
    odd = [
        undelivered() | {"body": "no JSON \0"},
        undelivered(RETRY_ATTEMPTS="many", TARGET_ARN="none", ERROR_CODE="\0" * 500, ERROR_MESSAGE="x" * 9000),
        message(EVENT, attributes={"RULE_ARN": ""}),
        {"messageId": "only", "body": None},
        {"messageId": "binary", "body": "{}", "messageAttributes": {"RULE_ARN": {"binaryValue": "eA=="}}},
    ]
    assert stage.consume(*odd) == []
    assert len(letters(stage.db)) == len(odd)


def test_failures_of_one_kind_share_a_fingerprint(stage: Stage) -> None:
    stage.consume(undelivered(), undelivered(), undelivered("sweep_runs"), failed_invocation())
    assert [kind["count"] for kind in kinds(stage)] == [2, 1, 1]


def kinds(stage: Stage) -> list[dict[str, Any]]:
    statement = "SELECT fingerprint, count(*) FROM signalbox.dead_letter_jobs GROUP BY 1 ORDER BY 2 DESC"
    return select(stage.db, statement)


# Once, and never not at all


def test_a_second_delivery_makes_no_second_row(stage: Stage) -> None:
    for record in (lane_message("garbage"), undelivered(), failed_invocation()):
        for _ in range(2):
            assert stage.consume(record, record) == []
    assert len(letters(stage.db)) == 3


def test_a_second_delivery_does_not_undo_a_triage(stage: Stage) -> None:
    record = undelivered()
    stage.consume(record)
    triage(stage.db, DeadLetterFilter(ids=[str(one_letter(stage)["id"])]), "resolved", by="ada")
    stage.consume(record)
    assert one_letter(stage)["status"] == "resolved"


def test_a_kind_that_returns_after_it_was_resolved_is_open_again(stage: Stage) -> None:
    stage.consume(undelivered())
    first = str(one_letter(stage)["id"])
    triage(stage.db, DeadLetterFilter(ids=[first]), "resolved", by="ada")
    stage.consume(undelivered())
    assert [row["status"] for row in letters(stage.db)] == ["pending", "pending"]
    assert letter(stage, first)["reopened_at"] is not None


def test_one_that_can_t_be_recorded_comes_back_and_the_others_don_t(stage: Stage) -> None:
    stage.db.execute(
        "ALTER TABLE signalbox.dead_letter_jobs ADD CONSTRAINT no_pruning CHECK (job_type <> 'prune_history')"
    )
    bad, good = undelivered(), undelivered("sweep_runs")
    assert stage.consume(bad, good) == [bad["messageId"]]
    assert one_letter(stage)["job_type"] == "sweep_runs"


def test_where_none_can_be_recorded_the_invocation_fails(stage: Stage) -> None:
    stage.db.execute("ALTER TABLE signalbox.dead_letter_jobs ADD CONSTRAINT full_up CHECK (false) NOT VALID")
    with pytest.raises(psycopg.errors.CheckViolation):
        stage.consume(undelivered(), lane_message("garbage"))


def test_a_lost_connection_costs_nothing(stage: Stage, dsn: str) -> None:
    stage.consume(undelivered())
    lose_session(dsn)
    assert stage.consume(undelivered()) == []
    assert len(letters(stage.db)) == 2


def test_two_deliveries_at_once_make_one_row(stage: Stage) -> None:
    records = [lane_message("garbage"), undelivered(), failed_invocation()]

    def work(_: int) -> list[str]:
        return stage.another().consume(*records)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(4))) == [[]] * 4
    assert len(letters(stage.db)) == 3
