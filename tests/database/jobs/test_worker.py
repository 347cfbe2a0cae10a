"""The worker ends each job of a batch once, whatever it answers, raises or does to its worker."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from signalbox.testing.aws import AwsStandIn
from signalbox.testing.sqs_events import sqs_event
from signalbox.testing.stage import Stage
from tests.support.dead_letters import redrive
from tests.support.jobs import obeying

pytestmark = pytest.mark.usefixtures("notes")


def note(stage: Stage, then: str = "complete", **fields: Any) -> str:
    return stage.submit("note_job", payload={"then": then}, **fields)


def noted(stage: Stage) -> list[str]:
    return [str(row[0]) for row in stage.db.execute("SELECT job_id FROM notes")]


def test_a_job_is_done_and_everything_about_it_is_known(stage: Stage) -> None:
    job_id = stage.submit(obeying("complete"))
    assert stage.work(job_id) == {"batchItemFailures": []}
    job = stage.job(job_id)
    assert (job["status"], job["result"], job["output_files"]) == ("completed", {"attempt": 1}, ["s3://bucket/file"])
    assert (job["attempts"], job["progress_percent"], job["lease_token"]) == (1, 100, None)
    assert job["worker_id"].startswith("request-")
    assert job["execution_node"] == "log-stream"
    [attempt] = stage.attempts(job_id)
    assert (attempt["status"], attempt["worker_id"]) == ("completed", job["worker_id"])
    assert attempt["duration_ms"] is not None


# ---- what the audit of another queue found wrong (seed 004)


def test_audit_1_the_worker_id_is_that_of_the_worker_and_no_placeholder(stage: Stage) -> None:
    one, other = stage.submit(obeying("complete")), stage.submit(obeying("complete"))
    stage.work(one)
    stage.work(other)
    ids = {stage.job(job_id)["worker_id"] for job_id in (one, other)}
    assert len(ids) == 2
    assert not any("$" in id_ for id_ in ids)


@pytest.mark.parametrize("word", ["complete", "fail_for_good", "cancel"])
def test_audit_2_a_final_job_has_no_heartbeat(stage: Stage, word: str) -> None:
    job_id = stage.submit(obeying(word))
    stage.work(job_id)
    assert stage.job(job_id)["heartbeat_at"] is None
    with pytest.raises(psycopg.errors.CheckViolation, match="heartbeat_only_where_running"):
        stage.db.execute("UPDATE signalbox.jobs SET heartbeat_at = now() WHERE id = %s", (job_id,))


@pytest.mark.parametrize("word", ["complete", "fail_for_good", "cancel"])
def test_audit_3_a_final_job_has_a_duration(stage: Stage, word: str) -> None:
    job_id = stage.submit(obeying(word))
    clock = "SELECT clock_timestamp()"
    [[before]] = stage.db.execute(clock).fetchall()
    stage.work(job_id)
    [[after]] = stage.db.execute(clock).fetchall()
    assert timedelta(0) < stage.job(job_id)["actual_duration"] < after - before


@pytest.mark.parametrize("what", ["subject", "correlation"])
def test_audit_4_and_5_ids_in_the_payload_are_columns_with_an_index(stage: Stage, what: str) -> None:
    job_id = stage.submit("note_job", payload={"subject": "document-7"}, correlation_id="document-7")
    query = f"SELECT id::text FROM signalbox.jobs WHERE {what}_id = 'document-7'"
    assert stage.db.execute(query.encode()).fetchall() == [(job_id,)]
    with stage.db.transaction():
        stage.db.execute("SET LOCAL enable_seqscan = off")  # a table of one row needs no index
        plan = stage.db.execute(f"EXPLAIN {query}".encode()).fetchall()
    assert f"jobs_of_{what}" in str(plan)


def test_audit_memory_and_processor_are_measured(stage: Stage) -> None:
    job_id = stage.submit(obeying("complete"))
    stage.work(job_id)
    job, [attempt] = stage.job(job_id), stage.attempts(job_id)
    assert job["memory_usage_mb"] > 10
    assert job["cpu_usage_percent"] is not None
    assert attempt["memory_used_mb"] == job["memory_usage_mb"]
    assert attempt["cpu_time_ms"] is not None


def test_audit_updated_at_is_never_before_completed_at(stage: Stage) -> None:
    job_id = stage.submit(obeying("complete"))
    stage.work(job_id)
    job = stage.job(job_id)
    assert job["updated_at"] >= job["completed_at"]
    with pytest.raises(psycopg.errors.CheckViolation, match="updated_not_before_completed"):
        stage.db.execute("UPDATE signalbox.jobs SET updated_at = completed_at - interval '1 s'")


def test_audit_the_last_of_the_attempts_may_fail(stage: Stage) -> None:
    """The constraint on the count must not refuse the last failure."""
    job_id = stage.submit(obeying("fail", max_attempts=1))
    stage.work(job_id)
    assert stage.job(job_id)["status"] == "failed"


# ---- outcomes


def test_failure_is_retried_and_finally_dead_lettered(stage: Stage, lanes: AwsStandIn) -> None:
    job_id = stage.submit(obeying("fail", tenant="acme"))
    for attempt, delay in ((1, 4), (2, 8)):
        stage.work(job_id)
        job = stage.job(job_id)
        assert (job["status"], job["attempts"], job["error_details"]["type"]) == ("pending", attempt, "Transient")
        assert timedelta(seconds=delay - 1) < job["scheduled_for"] - job["updated_at"] <= timedelta(seconds=delay)
        [message] = lanes.take()
        assert (message["job_id"], message["lane"], message["group"]) == (job_id, "normal", "acme")
        assert message["delay"] in (delay, delay + 1)
        stage.make_due(job_id)
    stage.work(job_id)
    job, letter = stage.job(job_id), stage.dead_letter(job_id)
    assert (job["status"], lanes.take()) == ("failed", [])
    assert (letter["failure_reason"], letter["total_attempts"], letter["tenant"]) == ("exhausted", 3, "acme")
    assert [one["status"] for one in letter["execution_history"]] == ["failed"] * 3


def test_a_message_that_comes_before_its_time_changes_nothing(stage: Stage) -> None:
    job_id = stage.submit(obeying("fail", 600))
    stage.work(job_id)
    before = stage.job(job_id)
    assert stage.work(job_id) == {"batchItemFailures": []}
    assert stage.job(job_id) == before


def test_permanent_failure_is_dead_lettered_at_once(stage: Stage) -> None:
    job_id = stage.submit(obeying("fail_for_good"))
    stage.work(job_id)
    letter = stage.dead_letter(job_id)
    assert (letter["failure_reason"], letter["error_type"], letter["total_attempts"]) == ("permanent", "Permanent", 1)


def test_throttling_and_snoozing_spend_no_attempt(stage: Stage) -> None:
    for word, execution in (("wait", "throttled"), ("snooze", "snoozed")):
        job_id = stage.submit(obeying(word, 30))
        for turn in (1, 2, 3, 4):
            stage.work(job_id)
            job = stage.job(job_id)
            assert (job["status"], job["attempts"], job["executions"]) == ("pending", 0, turn)
            stage.make_due(job_id)
        assert [attempt["status"] for attempt in stage.attempts(job_id)] == [execution] * 4


def test_job_that_is_throttled_for_ever_is_dead_lettered(stage: Stage) -> None:
    job_id = stage.submit(obeying("wait", 30))
    stage.work(job_id)
    job = stage.job(job_id)
    assert (job["throttles"], job["throttled_since"]) == (1, job["updated_at"])
    stage.db.execute("UPDATE signalbox.jobs SET throttles = 998")
    for _ in range(2):
        stage.make_due(job_id)
        stage.work(job_id)
    letter = stage.dead_letter(job_id)
    assert (letter["failure_reason"], letter["error_type"]) == ("exhausted", "RateLimited")
    assert "rate-limited 1000 times" in letter["final_error_message"]
    redrive(stage, str(letter["id"]))
    assert (stage.job(job_id)["throttles"], stage.job(job_id)["throttled_since"]) == (0, None)


def test_job_in_too_many_pieces_is_dead_lettered_with_its_cursor(stage: Stage) -> None:
    job_id = stage.submit(obeying("more"))
    stage.work(job_id)
    assert stage.job(job_id)["pieces"] == 1
    stage.db.execute("UPDATE signalbox.jobs SET pieces = 9999")
    stage.work(job_id)
    assert (stage.job(job_id)["status"], stage.job(job_id)["cursor"]) == ("failed", 1)
    assert "work is left after 10000 pieces" in stage.dead_letter(job_id)["final_error_message"]


def test_retry_counts_its_wait_from_the_time_it_was_due(stage: Stage) -> None:
    job_id = stage.submit(obeying("fail"))
    stage.work(job_id)
    [[due]] = stage.db.execute(
        "UPDATE signalbox.jobs SET updated_at = now() - interval '94 s', scheduled_for = now() - interval '90 s' "
        "RETURNING scheduled_for"
    ).fetchall()
    stage.work(job_id)
    assert stage.attempts(job_id)[1]["queued_at"] == due


def test_a_long_job_goes_on_from_its_cursor_piece_by_piece(stage: Stage, lanes: AwsStandIn) -> None:
    job_id = stage.submit(obeying("more"))
    for piece in (1, 2, 3):
        stage.work(job_id)
        job = stage.job(job_id)
        assert (job["status"], job["cursor"], job["attempts"], job["progress_percent"]) == (
            "pending",
            piece,
            0,
            piece * 25,
        )
        assert [message["job_id"] for message in lanes.take()] == [job_id]
    stage.work(job_id)
    assert (stage.job(job_id)["status"], stage.job(job_id)["result"]) == ("completed", {"pieces": 4})


def test_a_job_may_say_that_it_is_no_longer_wanted(stage: Stage) -> None:
    job_id = stage.submit(obeying("cancel"))
    stage.work(job_id)
    job = stage.job(job_id)
    assert (job["status"], job["error_details"]["message"]) == ("cancelled", "no longer wanted")


def test_a_job_that_answers_nonsense_fails_for_good_and_says_why(stage: Stage) -> None:
    job_id = stage.submit(obeying("nonsense"))
    stage.work(job_id)
    assert "a job returned a str" in stage.dead_letter(job_id)["final_error_message"]


def test_a_job_that_takes_too_long_is_cut_off(stage: Stage) -> None:
    job_id = stage.submit(obeying("hang", timeout=timedelta(milliseconds=150), max_attempts=1))
    beside = stage.submit(obeying("complete"))
    stage.work(job_id, beside)
    assert stage.dead_letter(job_id)["failure_reason"] == "timeout"
    assert [attempt["status"] for attempt in stage.attempts(job_id)] == ["timeout"]
    assert stage.job(beside)["status"] == "completed"


def test_jobs_without_time_left_stay_queued_and_are_sent_once(stage: Stage, lanes: AwsStandIn) -> None:
    jobs = [stage.submit(obeying("complete")) for _ in range(3)]
    stage.work(*jobs, seconds=10.5)  # ten of which the worker keeps for itself
    first, *rest = [stage.job(job_id) for job_id in sorted(jobs)]
    assert first["status"] == "completed"
    assert [(job["status"], job["attempts"], job["executions"]) for job in rest] == [("queued", 0, 0)] * 2
    assert {(message["job_id"], message["delay"] >= 10) for message in lanes.take()} == {
        (str(job["id"]), True) for job in rest
    }
    stage.work(*jobs)
    assert {stage.job(job_id)["status"] for job_id in jobs} == {"completed"}


def test_without_any_time_nothing_is_begun(stage: Stage) -> None:
    job_id = stage.submit(obeying("complete"))
    stage.work(job_id, seconds=9)
    job = stage.job(job_id)
    assert (job["status"], job["attempts"]) == ("queued", 0)


# ---- transactions and leases


def test_what_a_transactional_job_wrote_is_undone_where_it_fails(stage: Stage) -> None:
    good, bad = note(stage, "complete"), note(stage, "fail")
    stage.work(good, bad)
    assert (stage.job(good)["status"], stage.job(bad)["status"]) == ("completed", "pending")
    assert noted(stage) == [good]


def test_what_a_transactional_job_wrote_before_it_snoozed_is_kept_with_its_end(stage: Stage) -> None:
    job_id = note(stage, "snooze")
    stage.work(job_id)
    assert [attempt["status"] for attempt in stage.attempts(job_id)] == ["snoozed"]
    assert noted(stage) == [job_id]


@pytest.mark.parametrize(("then", "said"), [("commit", "commit()"), ("roll back", "rollback()")])
def test_a_transactional_job_can_not_end_its_transaction_before_itself(stage: Stage, then: str, said: str) -> None:
    """Otherwise its effects would be kept without its end, or the other way round."""
    job_id, beside = note(stage, then), note(stage, "complete")
    stage.work(job_id, beside)
    assert f"{said} is not for this connection" in stage.dead_letter(job_id)["final_error_message"]
    assert noted(stage) == [beside]


def test_transactional_job_that_calls_commit_gets_an_error(stage: Stage) -> None:
    """The commit can't be prevented, but it must be reported."""
    job_id, beside = note(stage, "commit in words"), note(stage, "complete")
    stage.work(job_id, beside)
    assert "ended its transaction by itself" in stage.dead_letter(job_id)["final_error_message"]
    assert stage.job(beside)["status"] == "completed"


def test_a_transactional_job_is_cut_off_in_the_middle_of_a_statement(stage: Stage) -> None:
    job_id, beside = note(stage, "hang", timeout=timedelta(milliseconds=200), max_attempts=1), note(stage)
    began = time.monotonic()
    stage.work(job_id, beside)
    assert time.monotonic() - began < 30
    assert stage.dead_letter(job_id)["failure_reason"] == "timeout"
    assert noted(stage) == [beside]


def test_open_transaction_is_rolled_back_and_reported_and_the_next_job_completes(stage: Stage) -> None:
    job_id, beside = stage.submit(obeying("begin")), note(stage)
    stage.work(job_id, beside)
    assert "left a transaction open" in stage.dead_letter(job_id)["final_error_message"]
    assert stage.job(beside)["status"] == "completed"
    assert noted(stage) == [beside]


def test_a_transactional_job_whose_connection_breaks_is_tried_again(stage: Stage) -> None:
    job_id, beside = note(stage, "lose the connection"), note(stage)
    stage.work(job_id, beside)
    assert (stage.job(job_id)["status"], stage.job(beside)["status"]) == ("pending", "completed")
    assert noted(stage) == [beside]


def test_a_late_worker_can_not_finish_a_rescued_job(stage: Stage) -> None:
    """Another worker has the lease before the effects are committed."""
    job_id = stage.submit("note_job")
    stage.db.execute(
        """
        CREATE FUNCTION steal() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE signalbox.jobs SET lease_token = gen_random_uuid() WHERE id = NEW.job_id;
            RETURN NEW;
        END $$
        """
    )
    stage.db.execute("CREATE TRIGGER steal AFTER INSERT ON notes FOR EACH ROW EXECUTE FUNCTION steal()")
    stage.work(job_id)
    assert stage.db.execute("SELECT count(*) FROM notes").fetchone() == (0,)
    assert stage.job(job_id)["status"] == "running"


def test_a_job_delivered_twice_is_done_once(stage: Stage) -> None:
    job_id = stage.submit("note_job")
    stage.work(job_id, job_id)
    stage.work(job_id)
    assert stage.db.execute("SELECT count(*) FROM notes").fetchone() == (1,)
    assert len(stage.attempts(job_id)) == 1


# ---- bad input


def test_unreadable_messages_come_back_and_the_others_are_done(stage: Stage) -> None:
    job_id = stage.submit(obeying("complete"))
    bodies = ["no JSON", "[]", '{"job_id": 5}', '{"job_id": "not-an-id"}', json.dumps({"job_id": job_id})]
    event = sqs_event(bodies)
    answer = stage.work(event=event)
    unreadable = [record["messageId"] for record in event["Records"][:4]]
    assert [failure["itemIdentifier"] for failure in answer["batchItemFailures"]] == unreadable
    assert stage.job(job_id)["status"] == "completed"


def test_a_message_of_a_job_that_there_is_not_is_done_with(stage: Stage) -> None:
    assert stage.work("0198c0de-0000-7000-8000-000000000000") == {"batchItemFailures": []}


def test_jobs_of_newer_code_are_parked_and_not_failed(stage: Stage) -> None:
    unknown, newer = stage.submit(obeying("complete")), stage.submit(obeying("complete"))
    stage.db.execute("UPDATE signalbox.jobs SET job_type = 'of_tomorrow' WHERE id = %s", (unknown,))
    stage.db.execute("UPDATE signalbox.jobs SET payload_version = 3 WHERE id = %s", (newer,))
    stage.work(unknown, newer)
    for job_id in (unknown, newer):
        job = stage.job(job_id)
        assert (job["status"], job["attempts"], job["error_details"]["type"]) == ("pending", 0, "JobTypeUnknown")
        assert job["scheduled_for"] > job["updated_at"] + timedelta(minutes=4)


def test_old_payload_is_upgraded_and_an_unfitting_one_is_dead_lettered(stage: Stage) -> None:
    old, odd = stage.submit(obeying("complete")), stage.submit(obeying("complete"))
    update = "UPDATE signalbox.jobs SET payload = %s, payload_version = %s WHERE id = %s"
    stage.db.execute(update, ('{"order": "complete"}', 1, old))
    stage.db.execute(update, ('{"word": "sing"}', 2, odd))
    stage.work(old, odd)
    assert stage.job(old)["status"] == "completed"
    letter = stage.dead_letter(odd)
    assert (letter["failure_reason"], letter["error_type"]) == ("permanent", "JobRefused")
    assert "field 'word'" in letter["final_error_message"]


def test_lanes_that_are_away_change_nothing_about_the_jobs(stage: Stage, lanes: AwsStandIn) -> None:
    lanes.away.add("normal")
    job_id = stage.submit(obeying("fail"))
    assert stage.work(job_id) == {"batchItemFailures": []}
    assert stage.job(job_id)["status"] == "pending"


# ---- controls


def control(db: psycopg.Connection, kind: str, key: str, **columns: object) -> None:
    names = ", ".join(columns)
    marks = ", ".join(["%s"] * len(columns))
    statement = f"INSERT INTO signalbox.job_caps (kind, key, {names}) VALUES (%s, %s, {marks})"
    db.execute(statement.encode(), (kind, key, *columns.values()))


@pytest.mark.parametrize(
    ("kind", "key"), [("type", "do_nothing"), ("lane", "high"), ("tenant", "acme"), ("key", "mail.example")]
)
def test_jobs_of_what_is_paused_are_paused_when_their_turn_comes(stage: Stage, kind: str, key: str) -> None:
    held = stage.submit("do_nothing", priority=1, tenant="acme", cap_key="mail.example")
    free = stage.submit(obeying("complete"))
    control(stage.db, kind, key, paused=True)
    stage.work(held, free)
    assert (stage.job(held)["status"], stage.job(free)["status"]) == ("paused", "completed")
