"""A redrive restarts a failed job once, when somebody asks, and as fast as they say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from signalbox.aws.invoke_async import FunctionInvoker
from signalbox.dead_letters import redrive as redriving
from signalbox.dead_letters import restart
from signalbox.dead_letters.letters import triage
from signalbox.dead_letters.redrive_checks import Candidate
from signalbox.errors import DeadLetterUnknown, JobRefused, PayloadRefused, TransitionRefused, Unavailable
from signalbox.jobs.dependency import Dependency
from signalbox.operate.filters import DeadLetterFilter
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.rows import select
from signalbox.testing.sqs_events import PRUNING, failed_invocation, lane_message, undelivered
from signalbox.testing.stage import Stage
from tests.support.at_once import at_once
from tests.support.attempts import attempt
from tests.support.dead_letters import (
    add_letter,
    audit,
    consume,
    fail,
    job_of,
    letter,
    letter_of,
    letters,
    redrive,
    redrive_all,
)
from tests.support.jobs import obeying
from tests.support.lock_waits import overlapping

ALL = DeadLetterFilter(job_type="obey")


def test_redriven_job_starts_again_and_records_why(stage: Stage) -> None:
    id_ = add_letter(stage, "fail", max_attempts=1)
    answer = redrive(stage, id_, by="ada", reason="the network is back")
    job, row = job_of(stage, id_), letter(stage, id_)
    assert (answer["redriven"], answer["left"], answer["refused"]["count"]) == (1, 0, 0)
    assert (job["status"], job["attempts"], job["completed_at"]) == ("pending", 0, None)
    assert job["scheduled_for"] == job["send_at"] is not None
    assert (row["status"], row["redrives"], row["resolved_by"]) == ("redriven", 1, "ada")
    assert (row["resolution_notes"], row["redriven_at"] is not None) == ("the network is back", True)
    [entry] = audit(stage.db, id_)
    assert (entry["actor"], entry["action"]) == ("ada", "dead_letter.redriven")
    assert (entry["detail"]["reason"], entry["detail"]["job_id"]) == ("the network is back", str(job["id"]))


def test_a_redriven_job_runs(stage: Stage) -> None:
    id_ = add_letter(stage, "fail", max_attempts=1)
    redrive(stage, id_, payload={"word": "complete"})
    job_id = str(job_of(stage, id_)["id"])
    stage.work(job_id)
    assert stage.job(job_id)["status"] == "completed"
    assert [attempt["attempt_number"] for attempt in stage.attempts(job_id)] == [1, 2]
    assert letter(stage, id_)["status"] == "redriven"


def test_one_that_fails_again_is_pending_again_in_its_own_dead_letter(stage: Stage) -> None:
    id_ = add_letter(stage)
    redrive(stage, id_)
    stage.work(str(job_of(stage, id_)["id"]))
    row = letter(stage, id_)
    assert (row["status"], row["total_attempts"], row["redrives"]) == ("pending", 2, 1)
    assert row["reopened_at"] == row["last_failed_at"] > row["first_failed_at"]
    assert (row["notified_at"], len(row["execution_history"]), len(letters(stage.db))) == (None, 2, 1)
    assert redrive(stage, id_)["redriven"] == 1
    assert letter(stage, id_)["redrives"] == 2


def test_a_dry_run_says_what_would_be_and_changes_nothing(stage: Stage) -> None:
    made = [add_letter(stage) for _ in range(12)]
    redrive(stage, made[0])
    before = letters(stage.db), select(stage.db, "SELECT * FROM signalbox.jobs ORDER BY id"), audit(stage.db, made[1])
    now = datetime.now(UTC)
    answer = redrive_all(stage, ALL, dry_run=True, rate_per_minute=2, now=now)
    assert (answer["dry_run"], answer["count"], answer["more"], len(answer["sample"])) == (True, 11, False, 10)
    assert answer["last_at"] == (now + timedelta(minutes=5)).isoformat()
    assert answer["sample"][0]["id"] == made[1]
    assert (
        letters(stage.db),
        select(stage.db, "SELECT * FROM signalbox.jobs ORDER BY id"),
        audit(stage.db, made[1]),
    ) == before


def test_a_dry_run_says_what_would_be_refused(stage: Stage) -> None:
    id_ = add_letter(stage)
    redrive(stage, id_)
    answer = redrive(stage, id_, dry_run=True)
    assert (answer["count"], answer["refused"]["count"]) == (0, 1)
    assert "already" in answer["refused"]["sample"][0]["reason"]


def test_a_rate_spreads_the_jobs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signalbox.dead_letters.restart.BATCH", 2)  # the rate goes on from batch to batch
    made = [add_letter(stage) for _ in range(5)]
    now = datetime.now(UTC)
    answer = redrive_all(stage, ALL, now=now, rate_per_minute=5)
    times = [job_of(stage, id_)["scheduled_for"] for id_ in made]
    assert times == [now + timedelta(seconds=12 * place) for place in range(5)]
    assert [job_of(stage, id_)["send_at"] for id_ in made] == times
    assert answer["last_at"] == times[-1].isoformat()


@pytest.mark.parametrize("rate", [0, -1, 6001])
def test_a_rate_that_is_none_is_refused(stage: Stage, rate: int) -> None:
    with pytest.raises(PayloadRefused, match="rate"):
        redrive(stage, add_letter(stage), rate_per_minute=rate)


def test_a_fingerprint_is_redriven_without_what_is_closed(stage: Stage) -> None:
    first, closed, other = add_letter(stage), add_letter(stage), add_letter(stage, "nonsense")
    triage(stage.db, DeadLetterFilter(ids=[closed]), "resolved", by="ada")
    redrive_all(stage, DeadLetterFilter(fingerprint=letter(stage, first)["fingerprint"]))
    assert [letter(stage, id_)["status"] for id_ in (first, closed, other)] == ["redriven", "resolved", "pending"]


def test_one_that_was_resolved_is_redriven_by_name(stage: Stage) -> None:
    id_ = add_letter(stage)
    triage(stage.db, DeadLetterFilter(ids=[id_]), "resolved", by="ada")
    redrive(stage, id_)
    row = letter(stage, id_)
    assert (row["status"], row["resolved_at"]) == ("redriven", None)


def test_preview_counts_up_to_a_number_and_says_that_there_are_more(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redriving, "MOST_COUNTED", 2)
    for _ in range(3):
        add_letter(stage)
    seen = redrive_all(stage, ALL, dry_run=True)
    assert (seen["count"], seen["more"]) == (2, True)


def test_a_job_that_is_not_failed_is_refused_with_its_state(stage: Stage) -> None:
    id_ = add_letter(stage)
    redrive(stage, id_)
    with pytest.raises(TransitionRefused, match="redriven already, and its job is pending"):
        redrive(stage, id_)
    stage.db.execute("UPDATE signalbox.dead_letter_jobs SET status = 'pending'")
    with pytest.raises(TransitionRefused, match="is pending; only a failed job"):
        redrive(stage, id_)


def test_a_job_that_was_pruned_is_refused(stage: Stage) -> None:
    id_ = add_letter(stage)
    stage.db.execute("DELETE FROM signalbox.jobs")
    with pytest.raises(TransitionRefused, match="submit it again"):
        redrive(stage, id_)


def test_of_those_named_all_are_redriven_or_none(stage: Stage) -> None:
    first, second = add_letter(stage), add_letter(stage)
    redrive(stage, second)
    with pytest.raises(TransitionRefused, match="nothing was changed"):
        redrive(stage, first, second)
    with pytest.raises(DeadLetterUnknown):
        redrive(stage, first, str(uuid4()))
    assert (letter(stage, first)["status"], job_of(stage, first)["status"]) == ("pending", "failed")


def test_an_order_that_names_nothing_is_refused(stage: Stage) -> None:
    with pytest.raises(PayloadRefused, match="every dead letter"):
        redrive_all(stage, DeadLetterFilter())


def test_crash_between_job_and_dead_letter_leaves_both_unchanged(stage: Stage) -> None:
    id_ = add_letter(stage)
    stage.db.execute("ALTER TABLE signalbox.audit_log ADD CONSTRAINT full_up CHECK (false) NOT VALID")
    with pytest.raises(psycopg.errors.CheckViolation):
        redrive(stage, id_)
    assert (letter(stage, id_)["status"], job_of(stage, id_)["status"]) == ("pending", "failed")


# An edited payload


def test_an_edited_payload_goes_to_the_job_and_is_checked_first(stage: Stage) -> None:
    id_ = add_letter(stage)
    with pytest.raises(JobRefused, match="'wrod' is not known"):
        redrive(stage, id_, payload={"wrod": "complete"})
    assert job_of(stage, id_)["status"] == "failed"
    redrive(stage, id_, payload={"word": "complete", "seconds": 3})
    job = job_of(stage, id_)
    assert (job["payload"], job["payload_version"], job["cursor"]) == ({"word": "complete", "seconds": 3}, 2, None)
    assert letter(stage, id_)["payload"]["word"] == "fail_for_good"
    assert audit(stage.db, id_)[0]["detail"]["payload_edited"] is True


@pytest.mark.usefixtures("notes")
def test_the_columns_of_an_edited_payload_follow_it(stage: Stage) -> None:
    job_id = stage.submit("note_job", payload={"subject": "one", "then": "fail"}, max_attempts=1)
    stage.work(job_id)
    redrive(stage, letter_of(stage, job_id), payload={"subject": "two"})
    assert stage.job(job_id)["subject_id"] == "two"


def test_an_edited_payload_is_for_one(stage: Stage) -> None:
    with pytest.raises(PayloadRefused, match="one dead letter"):
        redrive(stage, add_letter(stage), add_letter(stage), payload={"word": "complete"})
    with pytest.raises(PayloadRefused, match="one dead letter"):
        redrive_all(stage, ALL, payload={"word": "complete"})


# What belongs to the job


def test_the_group_counts_it_no_longer_and_ends_again(stage: Stage) -> None:
    job_id = fail(stage, group="import-7")
    stage.db.execute("UPDATE signalbox.job_groups SET sealed = true")
    stage.db.execute("SELECT signalbox.finish_group('import-7')")
    redrive(stage, letter_of(stage, job_id), payload={"word": "complete"})
    [group] = select(stage.db, "SELECT * FROM signalbox.job_groups")
    assert (group["total"], group["failed"], group["finished_at"]) == (1, 0, None)
    stage.work(job_id)
    [group] = select(stage.db, "SELECT * FROM signalbox.job_groups")
    assert (group["completed"], group["failed"], group["finished_at"] is not None) == (1, 0, True)


def test_a_group_that_ends_again_asks_nothing_more_of_its_completion_job(stage: Stage) -> None:
    job_id, completion = fail(stage, group="import-7"), stage.submit("do_nothing", delay=timedelta(hours=1))
    stage.db.execute(
        "UPDATE signalbox.job_groups SET sealed = true, completion_job_id = %s, finished_at = now()", (completion,)
    )
    redrive(stage, letter_of(stage, job_id), payload={"word": "complete"})
    stage.work(job_id)
    assert (stage.job(job_id)["status"], stage.job(completion)["status"]) == (
        "completed",
        "pending",
    )


def test_a_completion_job_waits_once_more_for_a_group_that_goes_on(stage: Stage) -> None:
    job_id = fail(stage, group="import-7")
    completion = stage.submit(obeying("fail_for_good"))
    stage.work(completion)
    stage.db.execute(
        "UPDATE signalbox.job_groups SET sealed = true, completion_job_id = %s, finished_at = now()", (completion,)
    )
    redrive(stage, letter_of(stage, job_id), payload={"word": "complete"})
    redrive(stage, letter_of(stage, completion), payload={"word": "complete"})
    assert stage.job(completion)["unmet_dependencies"] == 1
    stage.work(completion, job_id)
    stage.work(completion)
    assert [stage.job(id_)["status"] for id_ in (job_id, completion)] == ["completed", "completed"]


def failed_pair(stage: Stage) -> tuple[str, str]:
    """Return a failed job and the dependent that failed with it."""
    parent = stage.submit(obeying("fail_for_good"))
    child = stage.submit(obeying("complete", depends_on=[Dependency(parent)]))
    stage.work(parent)
    assert stage.job(child)["status"] == "failed"
    return parent, child


def test_a_job_does_not_run_without_the_one_that_it_depends_on(stage: Stage) -> None:
    parent, child = failed_pair(stage)
    with pytest.raises(TransitionRefused, match=f"depends on {parent}, which is failed: redrive that one as well"):
        redrive(stage, letter_of(stage, child))
    assert stage.job(child)["status"] == "failed"


def test_parent_and_child_redriven_together_run_in_their_order(stage: Stage) -> None:
    parent, child = failed_pair(stage)
    redrive(stage, letter_of(stage, child), letter_of(stage, parent))
    waiting = stage.job(child)
    assert (waiting["status"], waiting["unmet_dependencies"], waiting["send_at"]) == ("pending", 1, None)
    stage.db.execute("""UPDATE signalbox.jobs SET payload = '{"word": "complete"}' WHERE id = %s""", (parent,))
    stage.work(child, parent)
    assert stage.job(child)["status"] == "pending"
    assert stage.job(child)["unmet_dependencies"] == 0
    stage.work(child)
    assert stage.job(child)["status"] == "completed"


def test_a_child_whose_parent_can_t_go_stays_too(stage: Stage) -> None:
    parent, child = failed_pair(stage)
    stage.db.execute("UPDATE signalbox.dead_letter_jobs SET status = 'redriven' WHERE original_job_id = %s", (parent,))
    answer = redrive_all(stage, ALL)
    assert (answer["redriven"], answer["refused"]["count"]) == (0, 1)
    assert stage.job(child)["status"] == "failed"


def test_a_child_of_a_cancelled_job_is_refused(stage: Stage) -> None:
    parent = stage.submit(obeying("cancel"))
    child = stage.submit(obeying("complete", depends_on=[Dependency(parent)]))
    stage.work(parent)
    with pytest.raises(TransitionRefused, match="which is cancelled: submit it again"):
        redrive(stage, letter_of(stage, child))


def test_a_child_redriven_after_its_parent_waits_for_it(stage: Stage) -> None:
    parent, child = failed_pair(stage)
    redrive(stage, letter_of(stage, parent))
    redrive(stage, letter_of(stage, child))
    stage.work(parent)  # fails again, and the child with it
    assert [stage.job(id_)["status"] for id_ in (parent, child)] == ["failed", "failed"]
    assert [letter(stage, letter_of(stage, id_))["status"] for id_ in (parent, child)] == ["pending", "pending"]


# Races


@pytest.mark.parametrize("_", range(5))
def test_two_redrives_at_once_redrive_once(stage: Stage, dsn: str, _: int) -> None:
    made = [add_letter(stage) for _ in range(6)]
    answers = at_once(*[lambda on: redrive_all(stage.beside(on), ALL)] * 2, dsn=dsn)
    assert sum(answer["redriven"] for answer in answers) == 6
    assert [letter(stage, id_)["redrives"] for id_ in made] == [1] * 6
    assert [len(audit(stage.db, id_)) for id_ in made] == [1] * 6


@pytest.mark.parametrize("_", range(5))
def test_of_two_redrives_of_one_the_second_is_refused(stage: Stage, dsn: str, _: int) -> None:
    named = DeadLetterFilter(ids=[add_letter(stage)])
    answers = at_once(*[lambda on: redrive_all(stage.beside(on), named)] * 2, dsn=dsn)
    assert sorted(type(answer).__name__ for answer in answers) == ["TransitionRefused", "dict"]


@pytest.mark.parametrize("_", range(5))
def test_a_redrive_and_a_triage_at_once_leave_one_truth(stage: Stage, dsn: str, _: int) -> None:
    made = [add_letter(stage) for _ in range(4)]
    named = DeadLetterFilter(ids=made)
    at_once(
        lambda on: redrive_all(stage.beside(on), named),
        lambda on: triage(on, named, "ignored", by="bob", reason="noise"),
        dsn=dsn,
    )
    # The second to come: a redrive of what was just ignored goes, a triage of what was just redriven does not.
    assert [letter(stage, id_)["status"] for id_ in made] == ["redriven"] * 4
    assert [job_of(stage, id_)["status"] for id_ in made] == ["pending"] * 4


def test_a_redrive_waits_for_the_worker_that_ends_a_parent(stage: Stage, other: Stage) -> None:
    """Otherwise the child would wait for an ended job for ever."""
    first, second = stage.submit("do_nothing"), stage.submit("do_nothing")
    child = stage.submit("do_nothing", depends_on=[Dependency(first), Dependency(second)])
    attempt(stage.db, first, status="failed")
    redrive(stage, letter_of(stage, first))
    attempt(stage.db, first)
    assert stage.status(child) == "failed"
    id_ = letter_of(stage, child)
    _, [answer] = overlapping(stage.db, lambda: attempt(stage.db, second), lambda: redrive(other, id_))
    job = stage.job(child)
    assert (answer["redriven"], job["status"], job["unmet_dependencies"]) == (1, "pending", 0)
    assert job["send_at"] is not None


# Messages and invocations


def test_an_invocation_is_made_again_with_what_it_was_given(stage: Stage, invokes: AwsStandIn) -> None:
    id_ = consume(stage, failed_invocation())
    assert redrive(stage, id_)["redriven"] == 1
    [(function, payload)] = invokes.invoked
    assert (function, payload) == ("signalbox-archiver", PRUNING)
    assert (letter(stage, id_)["status"], audit(stage.db, id_)[0]["action"]) == ("redriven", "dead_letter.redriven")
    with pytest.raises(TransitionRefused, match="already"):
        redrive(stage, id_)


def test_redrive_sends_an_undelivered_event_as_its_target_expects_it(stage: Stage, invokes: AwsStandIn) -> None:
    id_ = consume(stage, undelivered())
    redrive(stage, id_)
    assert invokes.payloads == [PRUNING]


def test_an_invocation_that_lambda_does_not_take_is_not_redriven(stage: Stage, invokes: AwsStandIn) -> None:
    id_ = consume(stage, failed_invocation())
    invokes.away.add("lambda")
    with pytest.raises(Unavailable, match="does not accept invocations"):
        redrive(stage, id_)
    assert (letter(stage, id_)["status"], audit(stage.db, id_)) == ("pending", [])


def test_no_function_of_another_stack_is_invoked(stage: Stage, invokes: AwsStandIn) -> None:
    id_ = consume(stage, failed_invocation("billing-charge-everybody"))
    with pytest.raises(TransitionRefused, match="does not belong to stack signalbox"):
        redrive(stage, id_)
    assert invokes.payloads == []


def test_invocations_are_made_only_so_many_a_minute(stage: Stage, invokes: AwsStandIn) -> None:
    for _ in range(3):
        consume(stage, failed_invocation())
    answer = redrive_all(stage, DeadLetterFilter(source="invocation"), rate_per_minute=2)
    assert (answer["redriven"], answer["left"], len(invokes.payloads)) == (2, 1, 2)


def test_an_invocation_that_somebody_redrives_meanwhile_is_recorded_as_refused(
    stage: Stage, other: Stage, invokes: AwsStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {consume(stage, failed_invocation()) for _ in range(2)}
    invoke = restart._invoke

    def redrive_the_other(invoker: FunctionInvoker, one: Candidate) -> None:
        monkeypatch.setattr(restart, "_invoke", invoke)
        redrive(other, *(ids - {one.id}))
        invoke(invoker, one)

    monkeypatch.setattr(restart, "_invoke", redrive_the_other)
    answer = redrive_all(stage, DeadLetterFilter(source="invocation"))
    found = stage.operate("show_bulk_action", id=answer["bulk_action"])["bulk_action"]
    assert (answer["redriven"], answer["refused"]["count"], len(invokes.payloads)) == (1, 1, 2)
    assert found["counts"] == {"redriven": 1, "refused": 1}
    assert "redriven already" in found["refused"][0]["reason"]


@pytest.mark.parametrize("_", range(3))
def test_two_redrives_at_once_invoke_once(stage: Stage, dsn: str, invokes: AwsStandIn, _: int) -> None:
    named = DeadLetterFilter(ids=[consume(stage, failed_invocation())])
    at_once(*[lambda on: redrive_all(stage.beside(on), named)] * 2, dsn=dsn)
    assert len(invokes.payloads) == 1


def test_a_message_is_sent_again_once_its_job_is_there(stage: Stage) -> None:
    job_id = str(uuid4())
    id_ = consume(stage, lane_message({"job_id": job_id, "job_type": "obey"}))
    with pytest.raises(TransitionRefused, match="there is no job"):
        redrive(stage, id_)
    stage.submit(obeying("complete", id=job_id))
    now = datetime.now(UTC)
    redrive(stage, id_, now=now)
    assert stage.job(job_id)["send_at"] == now
    assert letter(stage, id_)["status"] == "redriven"


def test_a_message_of_a_job_that_waits_for_none_is_refused(stage: Stage) -> None:
    job_id = str(uuid4())
    id_ = consume(stage, lane_message({"job_id": job_id, "job_type": "obey"}))
    stage.work(stage.submit(obeying("complete", id=job_id)))
    with pytest.raises(TransitionRefused, match="is completed: it needs no message"):
        redrive(stage, id_)


def test_a_message_that_nobody_can_read_is_refused(stage: Stage) -> None:
    with pytest.raises(TransitionRefused, match="can't be decoded"):
        redrive(stage, consume(stage, lane_message("garbage")))


def test_only_the_payload_of_a_job_is_edited(stage: Stage) -> None:
    with pytest.raises(PayloadRefused, match="lost invocation"):
        redrive(stage, consume(stage, failed_invocation()), payload={"word": "complete"})
