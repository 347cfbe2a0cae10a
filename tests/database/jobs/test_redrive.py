"""Redriving: a job that failed for good starts anew, once, when somebody says so, and as fast as they say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from signalbox.dead_letters import redrive as redriving
from signalbox.dead_letters.letters import triage
from signalbox.errors import DeadLetterUnknown, JobRefused, PayloadRefused, TransitionRefused, Unavailable
from signalbox.jobs.dependency import Dependency
from signalbox.operate.filters import DeadLetterFilter
from tests.support.dead_messages import PRUNING, consume, failed_invocation, lane_message, undelivered
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.letters import Letters
from tests.support.work_bench import WorkBench, overlapping

ALL = DeadLetterFilter(job_type="obey")


def test_a_redriven_job_starts_anew_and_everybody_can_see_why(letters: Letters) -> None:
    id_ = letters.add("fail", max_attempts=1)
    answer = letters.redrive(id_, by="ada", reason="the network is back")
    job, row = letters.job_of(id_), letters.row(id_)
    assert (answer["redriven"], answer["left"], answer["refused"]["count"]) == (1, 0, 0)
    assert (job["status"], job["attempts"], job["completed_at"]) == ("pending", 0, None)
    assert job["scheduled_for"] == job["send_at"] is not None
    assert (row["status"], row["redrives"], row["resolved_by"]) == ("redriven", 1, "ada")
    assert (row["resolution_notes"], row["redriven_at"] is not None) == ("the network is back", True)
    [audit] = letters.audit(id_)
    assert (audit["actor"], audit["action"]) == ("ada", "dead_letter.redriven")
    assert (audit["detail"]["reason"], audit["detail"]["job_id"]) == ("the network is back", str(job["id"]))


def test_a_redriven_job_runs(letters: Letters) -> None:
    id_ = letters.add("fail", max_attempts=1)
    letters.redrive(id_, payload={"word": "complete"})
    job_id = str(letters.job_of(id_)["id"])
    letters.workshop.work(job_id)
    assert letters.workshop.job(job_id)["status"] == "completed"
    assert [attempt["attempt_number"] for attempt in letters.workshop.attempts(job_id)] == [1, 2]
    assert letters.status(id_) == "redriven"


def test_one_that_fails_again_is_pending_again_in_its_own_dead_letter(letters: Letters) -> None:
    id_ = letters.add()
    letters.redrive(id_)
    letters.workshop.work(str(letters.job_of(id_)["id"]))
    row = letters.row(id_)
    assert (row["status"], row["total_attempts"], row["redrives"]) == ("pending", 2, 1)
    assert row["reopened_at"] == row["last_failed_at"] > row["first_failed_at"]
    assert (row["notified_at"], len(row["execution_history"]), len(letters.all())) == (None, 2, 1)
    assert letters.redrive(id_)["redriven"] == 1
    assert letters.row(id_)["redrives"] == 2


def test_a_dry_run_says_what_would_be_and_changes_nothing(letters: Letters) -> None:
    made = [letters.add() for _ in range(12)]
    letters.redrive(made[0])
    before = letters.all(), letters.rows("SELECT * FROM signalbox.jobs ORDER BY id"), letters.audit(made[1])
    now = datetime.now(UTC)
    answer = letters.redrive_all(ALL, dry_run=True, rate_per_minute=2, now=now)
    assert (answer["dry_run"], answer["count"], answer["left"], len(answer["sample"])) == (True, 11, 0, 10)
    assert answer["last_at"] == (now + timedelta(minutes=5)).isoformat()
    assert answer["sample"][0]["id"] == made[1]
    assert (letters.all(), letters.rows("SELECT * FROM signalbox.jobs ORDER BY id"), letters.audit(made[1])) == before


def test_a_dry_run_says_what_would_be_refused(letters: Letters) -> None:
    id_ = letters.add()
    letters.redrive(id_)
    answer = letters.redrive(id_, dry_run=True)
    assert (answer["count"], answer["refused"]["count"]) == (0, 1)
    assert "already" in answer["refused"]["sample"][0]["reason"]


def test_a_rate_spreads_the_jobs(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redriving, "BATCH", 2)  # the rate goes on from batch to batch
    made = [letters.add() for _ in range(5)]
    now = datetime.now(UTC)
    answer = letters.redrive_all(ALL, now=now, rate_per_minute=4)
    times = [letters.job_of(id_)["scheduled_for"] for id_ in made]
    assert times == [now + timedelta(seconds=15 * place) for place in range(5)]
    assert [letters.job_of(id_)["send_at"] for id_ in made] == times
    assert answer["last_at"] == times[-1].isoformat()


@pytest.mark.parametrize("rate", [0, -1, 6001])
def test_a_rate_that_is_none_is_refused(letters: Letters, rate: int) -> None:
    with pytest.raises(PayloadRefused, match="rate"):
        letters.redrive(letters.add(), rate_per_minute=rate)


def test_a_fingerprint_is_redriven_without_what_is_closed(letters: Letters) -> None:
    first, closed, other = letters.add(), letters.add(), letters.add("nonsense")
    letters.triage("resolved", closed)
    letters.redrive_all(DeadLetterFilter(fingerprint=letters.row(first)["fingerprint"]))
    assert [letters.status(id_) for id_ in (first, closed, other)] == ["redriven", "resolved", "pending"]


def test_one_that_was_resolved_is_redriven_by_name(letters: Letters) -> None:
    id_ = letters.add()
    letters.triage("resolved", id_)
    letters.redrive(id_)
    row = letters.row(id_)
    assert (row["status"], row["resolved_at"]) == ("redriven", None)


def test_more_than_one_order_takes_are_said_to_be_left(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redriving, "MOST", 2)
    made = [letters.add() for _ in range(3)]
    assert letters.redrive_all(ALL, dry_run=True)["left"] == 1
    assert letters.redrive_all(ALL)["left"] == 1
    assert letters.redrive_all(ALL)["left"] == 0
    assert [letters.status(id_) for id_ in made] == ["redriven"] * 3


def test_a_job_that_is_not_failed_is_refused_with_its_state(letters: Letters) -> None:
    id_ = letters.add()
    letters.redrive(id_)
    with pytest.raises(TransitionRefused, match="redriven already, and its job is pending"):
        letters.redrive(id_)
    letters.db.execute("UPDATE signalbox.dead_letter_jobs SET status = 'pending'")
    with pytest.raises(TransitionRefused, match="is pending, and only a failed one"):
        letters.redrive(id_)


def test_a_job_that_was_pruned_is_refused(letters: Letters) -> None:
    id_ = letters.add()
    letters.db.execute("DELETE FROM signalbox.jobs")
    with pytest.raises(TransitionRefused, match="submit it anew"):
        letters.redrive(id_)


def test_of_those_named_all_are_redriven_or_none(letters: Letters) -> None:
    first, second = letters.add(), letters.add()
    letters.redrive(second)
    with pytest.raises(TransitionRefused, match="nothing was changed"):
        letters.redrive(first, second)
    with pytest.raises(DeadLetterUnknown):
        letters.redrive(first, str(uuid4()))
    assert (letters.status(first), letters.job_of(first)["status"]) == ("pending", "failed")


def test_an_order_that_names_nothing_is_refused(letters: Letters) -> None:
    with pytest.raises(PayloadRefused, match="every dead letter"):
        letters.redrive_all(DeadLetterFilter())


def test_a_crash_between_the_job_and_its_dead_letter_leaves_both_as_they_were(letters: Letters) -> None:
    id_ = letters.add()
    letters.db.execute("ALTER TABLE signalbox.audit_log ADD CONSTRAINT full_up CHECK (false) NOT VALID")
    with pytest.raises(psycopg.errors.CheckViolation):
        letters.redrive(id_)
    assert (letters.status(id_), letters.job_of(id_)["status"]) == ("pending", "failed")


# An edited payload


def test_an_edited_payload_goes_to_the_job_and_is_checked_first(letters: Letters) -> None:
    id_ = letters.add()
    with pytest.raises(JobRefused, match="'wrod' is not known"):
        letters.redrive(id_, payload={"wrod": "complete"})
    assert letters.job_of(id_)["status"] == "failed"
    letters.redrive(id_, payload={"word": "complete", "seconds": 3})
    job = letters.job_of(id_)
    assert (job["payload"], job["payload_version"], job["cursor"]) == ({"word": "complete", "seconds": 3}, 2, None)
    assert letters.row(id_)["payload"]["word"] == "fail_for_good"
    assert letters.audit(id_)[0]["detail"]["payload_edited"] is True


def test_the_columns_of_an_edited_payload_follow_it(letters: Letters) -> None:
    letters.db.execute("CREATE TABLE notes (job_id uuid, subject text)")
    job_id = letters.workshop.submit("note_job", payload={"subject": "one", "then": "fail"}, max_attempts=1).id
    letters.workshop.work(job_id)
    letters.redrive(letters.of(job_id), payload={"subject": "two"})
    assert letters.workshop.job(job_id)["subject_id"] == "two"


def test_an_edited_payload_is_for_one(letters: Letters) -> None:
    with pytest.raises(PayloadRefused, match="one dead letter"):
        letters.redrive(letters.add(), letters.add(), payload={"word": "complete"})
    with pytest.raises(PayloadRefused, match="one dead letter"):
        letters.redrive_all(ALL, payload={"word": "complete"})


# What belongs to the job


def test_the_group_counts_it_no_longer_and_ends_again(letters: Letters) -> None:
    job_id = letters.fail(group="import-7")
    letters.db.execute("UPDATE signalbox.job_groups SET sealed = true")
    letters.db.execute("SELECT signalbox.finish_group('import-7')")
    letters.redrive(letters.of(job_id), payload={"word": "complete"})
    [group] = letters.rows("SELECT * FROM signalbox.job_groups")
    assert (group["total"], group["failed"], group["finished_at"]) == (1, 0, None)
    letters.workshop.work(job_id)
    [group] = letters.rows("SELECT * FROM signalbox.job_groups")
    assert (group["completed"], group["failed"], group["finished_at"] is not None) == (1, 0, True)


def test_a_group_that_ends_again_asks_nothing_more_of_its_completion_job(letters: Letters) -> None:
    job_id, completion = letters.fail(group="import-7"), letters.workshop.submit(delay=timedelta(hours=1)).id
    letters.db.execute(
        "UPDATE signalbox.job_groups SET sealed = true, completion_job_id = %s, finished_at = now()", (completion,)
    )
    letters.redrive(letters.of(job_id), payload={"word": "complete"})
    letters.workshop.work(job_id)
    assert (letters.workshop.job(job_id)["status"], letters.workshop.job(completion)["status"]) == (
        "completed",
        "pending",
    )


def test_a_completion_job_waits_once_more_for_a_group_that_goes_on(letters: Letters) -> None:
    job_id = letters.fail(group="import-7")
    completion = letters.workshop.obey("fail_for_good")
    letters.workshop.work(completion)
    letters.db.execute(
        "UPDATE signalbox.job_groups SET sealed = true, completion_job_id = %s, finished_at = now()", (completion,)
    )
    letters.redrive(letters.of(job_id), payload={"word": "complete"})
    letters.redrive(letters.of(completion), payload={"word": "complete"})
    assert letters.workshop.job(completion)["unmet_dependencies"] == 1
    letters.workshop.work(completion, job_id)
    letters.workshop.work(completion)
    assert [letters.workshop.job(id_)["status"] for id_ in (job_id, completion)] == ["completed", "completed"]


def failed_pair(letters: Letters) -> tuple[str, str]:
    """A job, and one that failed since it depends on it."""
    parent = letters.workshop.obey("fail_for_good")
    child = letters.workshop.obey("complete", depends_on=[Dependency(parent)])
    letters.workshop.work(parent)
    assert letters.workshop.job(child)["status"] == "failed"
    return parent, child


def test_a_job_does_not_run_without_the_one_that_it_depends_on(letters: Letters) -> None:
    parent, child = failed_pair(letters)
    with pytest.raises(TransitionRefused, match=f"depends on {parent}, which is failed: redrive that one as well"):
        letters.redrive(letters.of(child))
    assert letters.workshop.job(child)["status"] == "failed"


def test_parent_and_child_redriven_together_run_in_their_order(letters: Letters) -> None:
    parent, child = failed_pair(letters)
    letters.redrive(letters.of(child), letters.of(parent))
    waiting = letters.workshop.job(child)
    assert (waiting["status"], waiting["unmet_dependencies"], waiting["send_at"]) == ("pending", 1, None)
    letters.db.execute("""UPDATE signalbox.jobs SET payload = '{"word": "complete"}' WHERE id = %s""", (parent,))
    letters.workshop.work(child, parent)
    assert letters.workshop.job(child)["status"] == "pending"
    assert letters.workshop.job(child)["unmet_dependencies"] == 0
    letters.workshop.work(child)
    assert letters.workshop.job(child)["status"] == "completed"


def test_a_child_whose_parent_can_t_go_stays_too(letters: Letters) -> None:
    parent, child = failed_pair(letters)
    letters.db.execute(
        "UPDATE signalbox.dead_letter_jobs SET status = 'redriven' WHERE original_job_id = %s", (parent,)
    )
    answer = letters.redrive_all(ALL)
    assert (answer["redriven"], answer["refused"]["count"]) == (0, 1)
    assert letters.workshop.job(child)["status"] == "failed"


def test_a_child_of_a_cancelled_job_is_refused(letters: Letters) -> None:
    parent = letters.workshop.obey("cancel")
    child = letters.workshop.obey("complete", depends_on=[Dependency(parent)])
    letters.workshop.work(parent)
    with pytest.raises(TransitionRefused, match="which is cancelled: submit it anew"):
        letters.redrive(letters.of(child))


def test_a_child_redriven_after_its_parent_waits_for_it(letters: Letters) -> None:
    parent, child = failed_pair(letters)
    letters.redrive(letters.of(parent))
    letters.redrive(letters.of(child))
    letters.workshop.work(parent)  # fails again, and the child with it
    assert [letters.workshop.job(id_)["status"] for id_ in (parent, child)] == ["failed", "failed"]
    assert [letters.status(letters.of(id_)) for id_ in (parent, child)] == ["pending", "pending"]


# Races


def at_once(dsn: str, *works: Any) -> list[Any]:
    """Each on a connection of its own, let go together; answers or errors."""
    gate = Barrier(len(works))

    def run(work: Any) -> Any:
        with psycopg.connect(dsn, autocommit=True) as connection:
            gate.wait()
            try:
                return work(connection)
            except TransitionRefused as error:
                return error

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(run, works))


@pytest.mark.parametrize("_", range(5))
def test_two_redrives_at_once_redrive_once(letters: Letters, dsn: str, _: int) -> None:
    made = [letters.add() for _ in range(6)]
    answers = at_once(dsn, *[lambda on: letters.redrive_all(ALL, on=on) for _ in range(2)])
    assert sum(answer["redriven"] for answer in answers) == 6
    assert [letters.row(id_)["redrives"] for id_ in made] == [1] * 6
    assert [len(letters.audit(id_)) for id_ in made] == [1] * 6


@pytest.mark.parametrize("_", range(5))
def test_of_two_redrives_of_one_the_second_is_refused(letters: Letters, dsn: str, _: int) -> None:
    named = DeadLetterFilter(ids=[letters.add()])
    answers = at_once(dsn, *[lambda on: letters.redrive_all(named, on=on) for _ in range(2)])
    assert sorted(type(answer).__name__ for answer in answers) == ["TransitionRefused", "dict"]


@pytest.mark.parametrize("_", range(5))
def test_a_redrive_and_a_triage_at_once_leave_one_truth(letters: Letters, dsn: str, _: int) -> None:
    made = [letters.add() for _ in range(4)]
    named = DeadLetterFilter(ids=made)
    at_once(
        dsn,
        lambda on: letters.redrive_all(named, on=on),
        lambda on: triage(on, named, "ignored", by="bob", reason="noise"),
    )
    # Whoever came second: a redrive of what was just ignored goes, a triage of what was just redriven does not.
    assert [letters.status(id_) for id_ in made] == ["redriven"] * 4
    assert [letters.job_of(id_)["status"] for id_ in made] == ["pending"] * 4


def test_a_redrive_waits_for_the_worker_that_ends_a_parent(letters: Letters, dsn: str) -> None:
    """Else the child would wait for a job that has just ended, for ever."""
    bench = WorkBench(letters.db)
    first, second = bench.submit(), bench.submit()
    child = bench.submit(depends_on=[Dependency(first), Dependency(second)])
    bench.run(first, status="failed")
    letters.redrive(letters.of(first))
    bench.run(first)
    assert bench.status(child) == "failed"
    named = DeadLetterFilter(ids=[letters.of(child)])

    def redrive_child() -> dict[str, Any]:
        with psycopg.connect(dsn, autocommit=True) as connection:
            return letters.redrive_all(named, on=connection)

    _, [answer] = overlapping(bench, lambda: bench.run(second), redrive_child)
    job = bench.job(child)
    assert (answer["redriven"], job["status"], job["unmet_dependencies"]) == (1, "pending", 0)
    assert job["send_at"] is not None


# Messages and invocations


def bury_record(letters: Letters, record: dict[str, Any]) -> str:
    assert consume(letters.workshop.engine, record) == []
    return str(letters.all()[-1]["id"])


def test_an_invocation_is_made_again_with_what_it_was_given(letters: Letters, invokes: InvokeRecorder) -> None:
    id_ = bury_record(letters, failed_invocation())
    assert letters.redrive(id_)["redriven"] == 1
    [(function, payload)] = invokes.received
    assert (function, payload) == ("signalbox-archiver", PRUNING)
    assert (letters.status(id_), letters.audit(id_)[0]["action"]) == ("redriven", "dead_letter.redriven")
    with pytest.raises(TransitionRefused, match="already"):
        letters.redrive(id_)


def test_an_event_that_a_rule_could_not_deliver_is_given_as_its_target_would_have_got_it(
    letters: Letters, invokes: InvokeRecorder
) -> None:
    id_ = bury_record(letters, undelivered())
    letters.redrive(id_)
    assert invokes.payloads == [PRUNING]


def test_an_invocation_that_lambda_does_not_take_is_not_redriven(letters: Letters, invokes: InvokeRecorder) -> None:
    id_ = bury_record(letters, failed_invocation())
    invokes.refusing = True
    with pytest.raises(Unavailable, match="takes no invocation"):
        letters.redrive(id_)
    assert (letters.status(id_), letters.audit(id_)) == ("pending", [])


def test_no_function_of_another_stack_is_invoked(letters: Letters, invokes: InvokeRecorder) -> None:
    id_ = bury_record(letters, failed_invocation("billing-charge-everybody"))
    with pytest.raises(TransitionRefused, match="none of stack signalbox's"):
        letters.redrive(id_)
    assert invokes.payloads == []


def test_invocations_are_made_only_so_many_a_minute(letters: Letters, invokes: InvokeRecorder) -> None:
    for _ in range(3):
        bury_record(letters, failed_invocation())
    answer = letters.redrive_all(DeadLetterFilter(source="invocation"), rate_per_minute=2)
    assert (answer["redriven"], answer["left"], len(invokes.payloads)) == (2, 1, 2)


@pytest.mark.parametrize("_", range(3))
def test_two_redrives_at_once_invoke_once(letters: Letters, dsn: str, invokes: InvokeRecorder, _: int) -> None:
    named = DeadLetterFilter(ids=[bury_record(letters, failed_invocation())])
    at_once(dsn, *[lambda on: letters.redrive_all(named, on=on) for _ in range(2)])
    assert len(invokes.payloads) == 1


def test_a_message_is_sent_again_once_its_job_is_there(letters: Letters) -> None:
    job_id = str(uuid4())
    id_ = bury_record(letters, lane_message({"job_id": job_id, "job_type": "obey"}))
    with pytest.raises(TransitionRefused, match="there is no job"):
        letters.redrive(id_)
    letters.workshop.obey("complete", id=job_id)
    now = datetime.now(UTC)
    letters.redrive(id_, now=now)
    assert letters.workshop.job(job_id)["send_at"] == now
    assert letters.status(id_) == "redriven"


def test_a_message_of_a_job_that_waits_for_none_is_refused(letters: Letters) -> None:
    job_id = str(uuid4())
    id_ = bury_record(letters, lane_message({"job_id": job_id, "job_type": "obey"}))
    letters.workshop.work(letters.workshop.obey("complete", id=job_id))
    with pytest.raises(TransitionRefused, match="is completed: it needs no message"):
        letters.redrive(id_)


def test_a_message_that_nobody_can_read_is_refused(letters: Letters) -> None:
    with pytest.raises(TransitionRefused, match="nobody can read"):
        letters.redrive(bury_record(letters, lane_message("garbage")))


def test_only_the_payload_of_a_job_is_edited(letters: Letters) -> None:
    with pytest.raises(PayloadRefused, match="lost invocation"):
        letters.redrive(bury_record(letters, failed_invocation()), payload={"word": "complete"})
