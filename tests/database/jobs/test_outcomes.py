"""A job says what becomes of it: refused with its effects, later from a cursor, or past a step that is not repeated."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.engine_pack import ENGINE
from signalbox.errors import MigrationRefused
from signalbox.jobs.dependency import Dependency
from signalbox.migrate.job_types import keep_job_types
from signalbox.packs.job_type import JobType
from signalbox.packs.outcome import Completed, Failed, More, OutputFile, Permanent, Snooze, Transient
from signalbox.packs.pack import Pack
from signalbox.packs.retry_policy import RetryPolicy
from signalbox.testing.rows import select
from signalbox.testing.stage import Stage
from signalbox_cli.views.job_page import job_page
from tests.support.dead_letters import letter_of, redrive
from tests.support.jobs.act import ACTS
from tests.support.visitor import Visitor

MODULE, HOUR = "tests.support.jobs.act", timedelta(hours=1)
RETRY = RetryPolicy(max_attempts=2, base=timedelta(seconds=1))
TYPES = (
    JobType("act", "acts", MODULE, retry=RETRY, on_dead_letter="shop.job_failed"),
    JobType("act_within", "acts within a transaction", MODULE, transactional=True, on_dead_letter="shop.job_failed"),
    JobType("act_async", "acts on the loop", MODULE, retry=RETRY),
)
SHOP = Pack("shop", (), ENGINE.migrations, TYPES)
HOOK = """
    CREATE SCHEMA shop; CREATE TABLE shop.failed (job uuid, payload jsonb, reason text, error text);
    GRANT USAGE ON SCHEMA shop TO signalbox_writer; GRANT ALL ON shop.failed TO signalbox_writer;
    CREATE FUNCTION shop.job_failed(job uuid, payload jsonb, reason text, error jsonb) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO shop.failed VALUES (job, payload, reason, error ->> 'type') $$
"""


@pytest.fixture
def stage(stage: Stage, notes: None) -> Stage:
    stage.db.execute(HOOK)
    keep_job_types(stage.db, [ENGINE, SHOP], ())
    return stage.with_job_types(*TYPES)


def run(stage: Stage, act: Callable[[Any], Any], job_type: str = "act", **fields: Any) -> str:
    """Submit a job that acts so, and run it once."""
    name = f"{act.__name__}-{id(act)}"
    ACTS[name] = act
    job_id = stage.submit(job_type, payload={"name": name}, **fields)
    stage.work(job_id)
    return job_id


def again(stage: Stage, job_id: str) -> None:
    stage.make_due(job_id)
    stage.work(job_id)


def failed(stage: Stage) -> list[tuple[str, str]]:
    """Return what the hook was told."""
    return [(str(row["job"]), row["reason"]) for row in select(stage.db, "SELECT * FROM shop.failed ORDER BY job")]


# ---- failed


def write(context: Any) -> None:
    context.db.execute("INSERT INTO notes (job_id, subject) VALUES (%s, 'kept')", (context.job.id,))


def refuse(context: Any) -> Failed:
    write(context)
    return Failed("the file is no permit")


def raise_permanent(context: Any) -> None:
    write(context)
    raise Permanent("no")


def test_refusal_keeps_what_a_transactional_job_wrote_and_an_error_does_not(stage: Stage) -> None:
    refused, broken = run(stage, refuse, "act_within"), run(stage, raise_permanent, "act_within")
    assert stage.statuses(refused, broken) == ["failed", "failed"]
    assert [str(row["job_id"]) for row in select(stage.db, "SELECT * FROM notes")] == [refused]
    letter = stage.dead_letter(refused)
    assert (letter["failure_reason"], letter["error_type"], letter["final_error_message"]) == (
        "permanent",
        "Failed",
        "the file is no permit",
    )
    assert sorted(failed(stage)) == sorted([(refused, "permanent"), (broken, "permanent")])


def test_refusals_of_a_kind_have_one_fingerprint(stage: Stage) -> None:
    one, two = run(stage, lambda _: Failed("row 7 is bad")), run(stage, lambda _: Failed("row 8 is bad"))
    assert stage.dead_letter(one)["fingerprint"] == stage.dead_letter(two)["fingerprint"]


# ---- the hook


def test_hook_is_told_of_every_end_of_a_job_that_is_dead_lettered(stage: Stage) -> None:
    def exhaust(_: Any) -> None:
        raise Transient("again")

    spent = run(stage, exhaust)
    assert failed(stage) == [], "it is tried again"
    child = stage.submit("act", payload={"name": "x"}, depends_on=[Dependency(spent)])
    again(stage, spent)
    lost = stage.submit("act", payload={"name": "x"}, max_attempts=1)
    stage.db.execute(
        "UPDATE signalbox.jobs SET status = 'running', attempts = 1, executions = 1, lease_token = gen_random_uuid(), "
        "worker_id = 'w', lease_expires_at = now() - interval '1 s', send_at = NULL, started_at = now() WHERE id = %s",
        (lost,),
    )
    stage.run("rescue_jobs")
    assert sorted(failed(stage)) == sorted([(spent, "exhausted"), (child, "dependency"), (lost, "lost")])


def test_hook_that_breaks_is_undone_and_noted_and_the_job_ends(stage: Stage) -> None:
    stage.db.execute(
        "CREATE OR REPLACE FUNCTION shop.job_failed(job uuid, payload jsonb, reason text, error jsonb) RETURNS void "
        "LANGUAGE plpgsql AS $$ BEGIN INSERT INTO shop.failed VALUES (job); PERFORM 1 / 0; END $$"
    )
    job_id = run(stage, raise_permanent)
    assert (stage.status(job_id), failed(stage)) == ("failed", [])
    assert stage.dead_letter(job_id)["metadata"] == {"hook_error": "22012: division by zero"}


@pytest.mark.parametrize("hook", ["shop.missing", "shop.failed", "job_failed", "shop.job_failed(1); SELECT 1"])
def test_hook_that_is_no_function_is_refused_by_the_migrator(stage: Stage, hook: str) -> None:
    shop = Pack("shop", (), ENGINE.migrations, (JobType("act", "acts", MODULE, on_dead_letter=hook),))
    with pytest.raises(MigrationRefused, match=r"'act' names on_dead_letter=.*a migration of its pack makes it"):
        keep_job_types(stage.db, [ENGINE, shop], ())


# ---- notes


def test_dead_letter_and_attempts_show_where_the_job_was(stage: Stage) -> None:
    def stumble(context: Any) -> None:
        context.note(step="scan", document=7)
        context.note(step="upload", pages=[1, 2])
        raise Transient("S3 is away")

    job_id = run(stage, stumble)
    again(stage, job_id)
    where = {"step": "upload", "document": 7, "pages": [1, 2]}
    assert stage.dead_letter(job_id)["metadata"] == where
    assert [attempt["metadata"] for attempt in stage.attempts(job_id)] == [where, where]
    assert stage.operate("show_dead_letter", id=letter_of(stage, job_id))["dead_letter"]["metadata"] == where


def test_notes_of_a_job_that_completes_are_not_kept(stage: Stage) -> None:
    job_id = run(stage, lambda context: context.note(step="scan"))
    assert (stage.status(job_id), stage.attempts(job_id)[0]["metadata"]) == ("completed", None)


@pytest.mark.parametrize("fact", [object(), "x" * 10_001, "\0", float("nan")])
def test_facts_that_can_not_be_noted_fail_the_job_with_the_reason(stage: Stage, fact: Any) -> None:
    job_id = run(stage, lambda context: context.note(step=fact))
    assert "the facts ['step'] can't be noted" in stage.dead_letter(job_id)["final_error_message"]


# ---- later


def test_snooze_keeps_a_cursor_and_without_one_that_of_the_last_piece(stage: Stage) -> None:
    seen: list[Any] = []

    def look(context: Any) -> Any:
        seen.append(context.cursor)
        answers = [More({"piece": 1}), Snooze(HOUR, "wait"), Snooze(HOUR, "wait", {"piece": 2}), Completed()]
        return answers[len(seen) - 1]

    job_id = run(stage, look)
    for _ in range(3):
        again(stage, job_id)
    assert (stage.status(job_id), seen) == ("completed", [None, {"piece": 1}, {"piece": 1}, {"piece": 2}])


def test_next_piece_begins_after_its_delay(stage: Stage) -> None:
    job_id = run(stage, lambda _: More({"piece": 1}, delay=HOUR))
    job = stage.job(job_id)
    assert (job["status"], job["cursor"], job["attempts"]) == ("pending", {"piece": 1}, 0)
    assert job["scheduled_for"] - datetime.now(UTC) > timedelta(minutes=59)


@pytest.mark.parametrize("job_type", ["act", "act_within"])
@pytest.mark.parametrize("first", [More({"piece": 1}, delay=HOUR), Snooze(HOUR, "wait", {"piece": 1})])
def test_duration_of_a_job_of_several_pieces_is_that_of_all_of_them(
    stage: Stage, first: More | Snooze, job_type: str
) -> None:
    job_id = run(stage, lambda context: first if context.cursor is None else None, job_type)
    assert stage.job(job_id)["actual_duration"] is None
    stage.db.execute("UPDATE signalbox.job_executions SET completed_at = started_at + interval '2 s'")
    again(stage, job_id)
    last = stage.attempts(job_id)[-1]
    took = timedelta(seconds=2) + (last["completed_at"] - last["started_at"])
    assert stage.job(job_id)["actual_duration"] == took
    [listed] = stage.operate("list_jobs")["jobs"]
    shown = stage.operate("show_job", id=job_id)["job"]
    assert {listed["duration_ms"], shown["duration_ms"]} == {round(took.total_seconds() * 1000)}


def test_attempts_that_failed_are_not_in_the_duration(stage: Stage) -> None:
    def fail_once(context: Any) -> None:
        if context.job.attempt == 1:
            raise Transient("busy")

    job_id = run(stage, fail_once)
    stage.db.execute("UPDATE signalbox.job_executions SET completed_at = started_at + interval '2 s'")
    again(stage, job_id)
    job = stage.job(job_id)
    assert job["actual_duration"] == job["completed_at"] - job["started_at"]


def test_duration_of_a_job_that_is_cancelled_while_it_waits_is_that_of_its_pieces(stage: Stage) -> None:
    begun, new = run(stage, lambda _: More({"piece": 1}, delay=HOUR)), stage.submit("act", payload={"name": "new"})
    stage.db.execute("UPDATE signalbox.job_executions SET completed_at = started_at + interval '2 s'")
    stage.operate("cancel_jobs", ids=[begun, new], reason="a test")
    assert [stage.job(job_id)["actual_duration"] for job_id in (begun, new)] == [timedelta(seconds=2), None]


# ---- files

SUM = "0" * 63 + "f"
UNTIL = datetime(2027, 3, 10, tzinfo=UTC)


@pytest.mark.parametrize("job_type", ["act", "act_within"])
def test_files_that_a_job_has_written_are_listed_with_what_is_known_of_them(stage: Stage, job_type: str) -> None:
    report = OutputFile("s3://b/report.pdf", SUM, 1200, "application/pdf", UNTIL)
    job_id = run(stage, lambda _: Completed(output_files=[report, "s3://b/plain"]), job_type)
    shown = stage.operate("show_job", id=job_id)
    assert shown["job"]["output_files"] == ["s3://b/report.pdf", "s3://b/plain"]
    [known] = shown["files"]
    assert (known["key"], known["sha256"], known["bytes"], known["content_type"]) == (
        "s3://b/report.pdf",
        SUM,
        1200,
        "application/pdf",
    )
    assert datetime.fromisoformat(known["kept_until"]) == UNTIL
    assert "1,200 bytes of application/pdf, until 2027-03-10" in "\n".join(
        line.plain for line in job_page(shown, 120, datetime.now(UTC))
    )
    page = Visitor(stage).log_in().get(f"/jobs/{job_id}").text
    assert all(text in page for text in ("s3://b/report.pdf", "application/pdf", SUM[:16], "s3://b/plain"))


@pytest.mark.parametrize(
    "file",
    [
        OutputFile("k", "short", 1, "text/plain"),
        OutputFile("k", SUM, -1, "text/plain"),
        OutputFile("k", SUM, 1, "nul\0"),
        OutputFile("k", SUM, 1, "text/plain", datetime(2026, 3, 10)),  # noqa: DTZ001
        OutputFile("k", SUM, 1, "text/plain", "2027-03-10"),  # type: ignore[arg-type]
    ],
)
def test_file_that_is_described_wrongly_fails_the_job_with_its_name(stage: Stage, file: OutputFile) -> None:
    job_id = run(stage, lambda _: Completed(output_files=[file]))
    assert "a job returned the output file 'k'" in stage.dead_letter(job_id)["final_error_message"]


# ---- once


def made(calls: list[Any], call: Any = 1) -> int:
    """Note a call, and return how many there were."""
    calls.append(call)
    return len(calls)


@pytest.mark.parametrize("job_type", ["act", "act_within"])
def test_step_is_made_once_however_often_the_job_is_tried(stage: Stage, job_type: str) -> None:
    charged: list[int] = []

    def charge(context: Any) -> Completed:
        answer = context.once("charge", lambda: {"id": made(charged)})
        assert [context.kept("charge"), context.kept("other")] == [[answer], []]
        if len(stage.attempts(context.job.id)) < 1:
            raise Transient("after the charge")
        return Completed(answer)

    job_id = run(stage, charge, job_type)
    again(stage, job_id)
    assert (stage.status(job_id), stage.job(job_id)["result"], charged) == ("completed", {"id": 1}, [1])


def test_step_on_the_event_loop_is_made_once(stage: Stage) -> None:
    charged: list[int] = []

    async def call() -> int:
        charged.append(1)
        return len(charged)

    async def charge(context: Any) -> Completed:
        answers = [await context.once("charge", call) for _ in range(2)]
        assert await context.kept("ch") == [1]
        if len(stage.attempts(context.job.id)) < 1:
            raise Transient("after the charge")
        return Completed(answers)

    job_id = run(stage, charge, "act_async")
    again(stage, job_id)
    assert (stage.job(job_id)["result"], charged) == ([1, 1], [1])


def test_step_that_raises_is_made_again_and_null_is_an_answer(stage: Stage) -> None:
    calls: list[str] = []

    def fail(context: Any) -> None:
        context.once("nothing", lambda: calls.append("nothing"))
        context.once("broken", lambda: made(calls, "broken") and json.loads("{"))

    again(stage, run(stage, fail))
    assert calls == ["nothing", "broken", "broken"]


def test_worker_that_has_lost_the_job_keeps_no_answer(stage: Stage) -> None:
    def lose(context: Any) -> Any:
        stage.db.execute("UPDATE signalbox.jobs SET lease_token = gen_random_uuid() WHERE id = %s", (context.job.id,))
        return context.once("charge", lambda: 1)

    run(stage, lose)
    assert select(stage.db, "SELECT * FROM signalbox.job_steps") == []


def test_redrive_goes_on_after_the_steps_and_with_another_payload_begins_anew(stage: Stage) -> None:
    charged: list[int] = []

    def charge(context: Any) -> None:
        context.once("charge", lambda: charged.append(1))
        raise Permanent("after the charge")

    job_id = run(stage, charge)
    redrive(stage, letter_of(stage, job_id))
    stage.work(job_id)
    assert len(charged) == 1
    redrive(stage, letter_of(stage, job_id), payload=stage.job(job_id)["payload"])
    stage.work(job_id)
    assert len(charged) == 2


def test_answer_that_is_no_json_fails_the_job_with_the_reason(stage: Stage) -> None:
    job_id = run(stage, lambda context: context.once("charge", object))
    assert "the answer of step 'charge' can't be kept as JSON" in stage.dead_letter(job_id)["final_error_message"]


def test_step_is_kept_while_the_jobs_own_transaction_is_open(stage: Stage, db: psycopg.Connection[Any]) -> None:
    def look(context: Any) -> Completed:
        write(context)
        context.once("charge", lambda: 1)
        return Completed(len(select(db, "SELECT * FROM signalbox.job_steps")))

    assert stage.job(run(stage, look, "act_within"))["result"] == 1
