"""Dead letters: written with the failure, found again by their kind, triaged by people, opened again by a return."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from signalbox.dead_letters.letters import (
    TRIAGE,
    LetterStatus,
    list_kinds,
    list_letters,
    show_letter,
    triage,
)
from signalbox.errors import DeadLetterUnknown, IdRefused, PayloadRefused, TransitionRefused
from signalbox.operate.filters import DeadLetterFilter
from tests.support.letters import Letters, ids_of


def test_a_failed_job_has_a_dead_letter_that_says_why(letters: Letters) -> None:
    row = letters.row(letters.add(tenant="acme"))
    assert (row["status"], row["source"], row["failure_reason"]) == ("pending", "job", "permanent")
    assert (row["job_type"], row["tenant"], row["total_attempts"]) == ("obey", "acme", 1)
    assert (row["error_type"], row["final_error_message"]) == ("Permanent", "never")
    assert "obey.py" in row["final_error_stack"]
    assert row["first_failed_at"] == row["last_failed_at"]
    assert [entry["status"] for entry in row["execution_history"]] == ["failed"]


def test_neither_is_there_without_the_other_and_the_attempt_counts_once(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until rescue_jobs tells of the job, once its lease has run out."""
    job_id = letters.workshop.obey("fail_for_good")
    letters.db.execute("ALTER TABLE signalbox.dead_letter_jobs ADD CONSTRAINT full_up CHECK (false) NOT VALID")
    letters.workshop.work(job_id)
    assert letters.workshop.job(job_id)["status"] == "running"
    assert '"AttemptsFailed":[1.0]' in capsys.readouterr().out
    assert letters.all() == []


def test_failures_of_one_kind_have_one_fingerprint(letters: Letters) -> None:
    first, second = letters.add(), letters.add()
    other = letters.add("nonsense")
    kinds = [letters.row(id_)["fingerprint"] for id_ in (first, second, other)]
    assert kinds[0] == kinds[1] != kinds[2]


def test_a_list_is_filtered_and_paged_the_newest_failure_first(letters: Letters) -> None:
    made = [letters.add(tenant="acme" if place % 2 else "bolt") for place in range(5)]
    seen, before = [], None
    while page := list_letters(letters.db, DeadLetterFilter(), limit=2, before=before):
        seen += ids_of(page["dead_letters"])
        before = page["next"]
        if before is None:
            break
    assert seen == made[::-1]
    assert ids_of(list_letters(letters.db, DeadLetterFilter(tenant="acme"))["dead_letters"]) == [made[3], made[1]]
    assert "payload" not in list_letters(letters.db, DeadLetterFilter())["dead_letters"][0]


def test_each_filter_holds(letters: Letters) -> None:
    id_ = letters.add(tenant="acme")
    row, hour = letters.row(id_), timedelta(hours=1)
    now = datetime.now(UTC)
    held = [
        DeadLetterFilter(ids=[id_]),
        DeadLetterFilter(status=["pending"]),
        DeadLetterFilter(source="job"),
        DeadLetterFilter(job_type="obey"),
        DeadLetterFilter(fingerprint=row["fingerprint"]),
        DeadLetterFilter(severity="warning"),
        DeadLetterFilter(since=now - hour, until=now + hour),
    ]
    missed = [
        DeadLetterFilter(ids=[str(uuid4())]),
        DeadLetterFilter(status=["resolved"]),
        DeadLetterFilter(source="message"),
        DeadLetterFilter(job_type="other"),
        DeadLetterFilter(fingerprint="f"),
        DeadLetterFilter(severity="critical"),
        DeadLetterFilter(tenant="bolt"),
        DeadLetterFilter(since=now + hour),
        DeadLetterFilter(until=now - hour),
    ]
    assert [ids_of(list_letters(letters.db, one)["dead_letters"]) for one in held] == [[id_]] * len(held)
    assert [list_letters(letters.db, one)["dead_letters"] for one in missed] == [[]] * len(missed)


def test_one_is_shown_with_its_payload_its_executions_and_what_was_done(letters: Letters) -> None:
    id_ = letters.add("fail", max_attempts=1)
    letters.triage("investigating", id_, by="ada", reason="the network?")
    shown = show_letter(letters.db, id_)
    assert (shown["payload"]["word"], shown["job_status"], shown["failure_reason"]) == ("fail", "failed", "exhausted")
    assert [(one["attempt_number"], one["error_code"]) for one in shown["execution_history"]] == [(1, "Transient")]
    assert [(one["actor"], one["action"]) for one in shown["audit"]] == [("ada", "dead_letter.investigating")]
    assert shown["audit"][0]["detail"]["reason"] == "the network?"


def test_the_history_outlives_its_job(letters: Letters) -> None:
    job_id = letters.fail()
    letters.db.execute("DELETE FROM signalbox.job_executions WHERE job_id = %s", (job_id,))
    letters.db.execute("DELETE FROM signalbox.jobs WHERE id = %s", (job_id,))
    shown = show_letter(letters.db, letters.of(job_id))
    assert shown["job_status"] is None
    assert [one["attempt"] for one in shown["execution_history"]] == [1]


@pytest.mark.parametrize("id_", ["nonsense", "'; DROP", "0198c0de-0000-7000-8000-000000000000"])
def test_one_that_there_is_not_is_said_so(letters: Letters, id_: str) -> None:
    with pytest.raises((DeadLetterUnknown, IdRefused), match="dead letter"):
        show_letter(letters.db, id_)


@pytest.mark.parametrize("before", ["yesterday", "2026-01-01T00:00:00Z/1", "/"])
def test_a_page_that_there_is_not_is_refused(letters: Letters, before: str) -> None:
    with pytest.raises(PayloadRefused, match="`next`"):
        list_letters(letters.db, DeadLetterFilter(), before=before)


def test_kinds_are_counted_by_what_was_done_about_them(letters: Letters) -> None:
    first, _, third = letters.add(tenant="acme"), letters.add(tenant="bolt"), letters.add("nonsense")
    letters.triage("ignored", first)
    newest, oldest = list_kinds(letters.db, DeadLetterFilter())["kinds"]
    assert (newest["newest_id"], newest["total"], newest["pending"]) == (third, 1, 1)
    assert (oldest["total"], oldest["pending"], oldest["ignored"], oldest["tenants"]) == (2, 1, 1, 2)
    page = list_kinds(letters.db, DeadLetterFilter(), limit=1)
    assert ([kind["newest_id"] for kind in page["kinds"]], page["more"]) == ([third], 1)
    assert oldest["first_seen"] < oldest["last_seen"]
    assert [kind["total"] for kind in list_kinds(letters.db, DeadLetterFilter(status=["ignored"]))["kinds"]] == [1]


@pytest.mark.parametrize("status", [status for status in LetterStatus if status is not LetterStatus.REDRIVEN])
@pytest.mark.parametrize("source", list(LetterStatus))
def test_triage_goes_the_ways_of_the_table_and_no_other(
    letters: Letters, source: LetterStatus, status: LetterStatus
) -> None:
    id_ = letters.add()
    if source is LetterStatus.REDRIVEN:
        letters.redrive(id_)
    elif source is not LetterStatus.PENDING:
        letters.triage(source, id_)
    if status in TRIAGE[source] or status == source:
        assert letters.triage(status, id_).changed == (status != source)
        assert letters.status(id_) == status
    else:
        with pytest.raises(TransitionRefused, match=f"is {source}"):
            letters.triage(status, id_)
        assert letters.status(id_) == source


def test_nobody_triages_to_redriven(letters: Letters) -> None:
    with pytest.raises(TransitionRefused, match="redrive"):
        letters.triage("redriven", letters.add())


def test_of_those_named_all_are_triaged_or_none(letters: Letters) -> None:
    first, second = letters.add(), letters.add()
    letters.redrive(second)
    with pytest.raises(TransitionRefused, match="nothing was changed"):
        letters.triage("resolved", first, second)
    with pytest.raises(DeadLetterUnknown):
        letters.triage("resolved", first, str(uuid4()))
    assert letters.status(first) == "pending"


def test_by_a_filter_those_are_triaged_that_can_be(letters: Letters) -> None:
    first, second = letters.add(), letters.add()
    letters.redrive(second)
    selection = DeadLetterFilter(fingerprint=letters.row(first)["fingerprint"])
    triaged = triage(letters.db, selection, "resolved", by="ada", reason="deployed a fix")
    assert (triaged.changed, triaged.unchanged) == (1, 1)
    row = letters.row(first)
    assert (row["status"], row["resolved_by"], row["resolution_notes"]) == ("resolved", "ada", "deployed a fix")
    assert row["resolved_at"] is not None


def test_an_order_that_names_nothing_is_refused(letters: Letters) -> None:
    id_ = letters.add()
    for selection in (DeadLetterFilter(), DeadLetterFilter(status=["pending"])):
        with pytest.raises(PayloadRefused, match="every dead letter"):
            triage(letters.db, selection, "ignored", by="ada")
    assert letters.status(id_) == "pending"


def test_a_kind_that_returns_after_it_was_resolved_is_open_again(letters: Letters) -> None:
    id_ = letters.add()
    letters.triage("resolved", id_)
    letters.db.execute("UPDATE signalbox.dead_letter_jobs SET notified_at = now()")
    letters.add()
    row = letters.row(id_)
    assert (row["status"], row["resolved_at"], row["notified_at"]) == ("pending", None, None)
    assert row["reopened_at"] is not None


def test_a_kind_that_is_ignored_stays_so_when_it_returns(letters: Letters) -> None:
    id_ = letters.add()
    letters.triage("ignored", id_)
    letters.add()
    assert letters.status(id_) == "ignored"


def test_only_the_newest_of_a_kind_is_opened_again(letters: Letters) -> None:
    older, newest = letters.add(), letters.add()
    letters.triage("resolved", older, newest)
    for _ in range(3):
        letters.add()
    assert (letters.status(older), letters.status(newest)) == ("resolved", "pending")


def test_another_kind_opens_nothing(letters: Letters) -> None:
    id_ = letters.add()
    letters.triage("resolved", id_)
    letters.add("nonsense")
    assert letters.status(id_) == "resolved"


def test_two_workers_that_meet_the_same_kinds_at_once_open_each_once(letters: Letters, dsn: str) -> None:
    first, second = letters.add(), letters.add("nonsense")
    kinds = [letters.row(id_)["fingerprint"] for id_ in (first, second)]
    letters.triage("resolved", first, second)

    def reopen(order: list[str]) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute("SELECT signalbox.reopen_dead_letters(%s)", (order,))

    with ThreadPoolExecutor(2) as threads:
        for future in [threads.submit(reopen, kinds[:: 1 if place % 2 else -1]) for place in range(8)]:
            future.result()
    assert [letters.status(id_) for id_ in (first, second)] == ["pending", "pending"]
