"""Dead letters are written with the failure, grouped by kind, triaged by people and reopened."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from signalbox.dead_letters.kinds import list_kinds
from signalbox.dead_letters.letters import (
    TRIAGE,
    LetterStatus,
    list_letters,
    show_letter,
    triage,
)
from signalbox.errors import DeadLetterUnknown, IdRefused, PayloadRefused, TransitionRefused
from signalbox.operate.filters import DeadLetterFilter
from signalbox.testing.stage import Stage
from tests.support.dead_letters import add_letter, fail, letter, letter_of, letters, redrive
from tests.support.jobs import obeying


def ids_of(page: dict[str, Any]) -> list[str]:
    return [str(row["id"]) for row in page["dead_letters"]]


def test_a_failed_job_has_a_dead_letter_that_says_why(stage: Stage) -> None:
    row = letter(stage, add_letter(stage, tenant="acme"))
    assert (row["status"], row["source"], row["failure_reason"]) == ("pending", "job", "permanent")
    assert (row["job_type"], row["tenant"], row["total_attempts"]) == ("obey", "acme", 1)
    assert (row["error_type"], row["final_error_message"]) == ("Permanent", "never")
    assert "obey.py" in row["final_error_stack"]
    assert row["first_failed_at"] == row["last_failed_at"]
    assert [entry["status"] for entry in row["execution_history"]] == ["failed"]


def test_neither_is_there_without_the_other_and_the_attempt_counts_once(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    """rescue_jobs reports the job once its lease has expired."""
    job_id = stage.submit(obeying("fail_for_good"))
    stage.db.execute("ALTER TABLE signalbox.dead_letter_jobs ADD CONSTRAINT full_up CHECK (false) NOT VALID")
    stage.work(job_id)
    assert stage.job(job_id)["status"] == "running"
    assert '"AttemptsFailed":[1.0]' in capsys.readouterr().out
    assert letters(stage.db) == []


def test_failures_of_one_kind_have_one_fingerprint(stage: Stage) -> None:
    first, second = add_letter(stage), add_letter(stage)
    other = add_letter(stage, "nonsense")
    kinds = [letter(stage, id_)["fingerprint"] for id_ in (first, second, other)]
    assert kinds[0] == kinds[1] != kinds[2]


def test_a_list_is_filtered_and_paged_the_newest_failure_first(stage: Stage) -> None:
    made = [add_letter(stage, tenant="acme" if place % 2 else "bolt") for place in range(5)]
    seen, before = [], None
    while page := list_letters(stage.db, DeadLetterFilter(), limit=2, before=before):
        seen += ids_of(page)
        before = page["next"]
        if before is None:
            break
    assert seen == made[::-1]
    assert ids_of(list_letters(stage.db, DeadLetterFilter(tenant="acme"))) == [made[3], made[1]]
    assert "payload" not in list_letters(stage.db, DeadLetterFilter())["dead_letters"][0]


def test_letters_of_one_instant_are_paged_by_their_ids(stage: Stage) -> None:
    made = [add_letter(stage) for _ in range(3)]
    stage.db.execute("UPDATE signalbox.dead_letter_jobs SET last_failed_at = now()")
    first = list_letters(stage.db, DeadLetterFilter(), limit=2)
    second = list_letters(stage.db, DeadLetterFilter(), limit=2, before=first["next"])
    assert ids_of(first) + ids_of(second) == sorted(made, reverse=True)
    assert second["next"] is None


def test_each_filter_holds(stage: Stage) -> None:
    id_ = add_letter(stage, tenant="acme")
    row, hour = letter(stage, id_), timedelta(hours=1)
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
    assert [ids_of(list_letters(stage.db, one)) for one in held] == [[id_]] * len(held)
    assert [list_letters(stage.db, one)["dead_letters"] for one in missed] == [[]] * len(missed)


def test_one_is_shown_with_its_payload_its_executions_and_what_was_done(stage: Stage) -> None:
    id_ = add_letter(stage, "fail", max_attempts=1)
    triage(stage.db, DeadLetterFilter(ids=[id_]), "investigating", by="ada", reason="the network?")
    shown = show_letter(stage.db, id_)
    assert (shown["payload"]["word"], shown["job_status"], shown["failure_reason"]) == ("fail", "failed", "exhausted")
    assert [(one["attempt_number"], one["error_code"]) for one in shown["execution_history"]] == [(1, "Transient")]
    assert [(one["actor"], one["action"]) for one in shown["audit"]] == [("ada", "dead_letter.investigating")]
    assert shown["audit"][0]["detail"]["reason"] == "the network?"


def test_the_history_outlives_its_job(stage: Stage) -> None:
    job_id = fail(stage)
    stage.db.execute("DELETE FROM signalbox.job_executions WHERE job_id = %s", (job_id,))
    stage.db.execute("DELETE FROM signalbox.jobs WHERE id = %s", (job_id,))
    shown = show_letter(stage.db, letter_of(stage, job_id))
    assert shown["job_status"] is None
    assert [one["attempt_number"] for one in shown["execution_history"]] == [1]


@pytest.mark.parametrize("id_", ["nonsense", "'; DROP", "0198c0de-0000-7000-8000-000000000000"])
def test_one_that_there_is_not_is_said_so(stage: Stage, id_: str) -> None:
    with pytest.raises((DeadLetterUnknown, IdRefused), match="dead letter"):
        show_letter(stage.db, id_)


@pytest.mark.parametrize("before", ["yesterday", "2026-01-01T00:00:00Z/1", "/"])
def test_a_page_that_there_is_not_is_refused(stage: Stage, before: str) -> None:
    with pytest.raises(PayloadRefused, match="`next`"):
        list_letters(stage.db, DeadLetterFilter(), before=before)


def test_kinds_are_counted_by_what_was_done_about_them(stage: Stage) -> None:
    first, _, third = add_letter(stage, tenant="acme"), add_letter(stage, tenant="bolt"), add_letter(stage, "nonsense")
    triage(stage.db, DeadLetterFilter(ids=[first]), "ignored", by="ada")
    newest, oldest = list_kinds(stage.db, DeadLetterFilter(), datetime.now(UTC))["kinds"]
    assert (newest["newest_id"], newest["total"], newest["pending"]) == (third, 1, 1)
    assert (oldest["total"], oldest["pending"], oldest["ignored"], oldest["tenants"]) == (2, 1, 1, 2)
    page = list_kinds(stage.db, DeadLetterFilter(), datetime.now(UTC), limit=1)
    assert ([kind["newest_id"] for kind in page["kinds"]], page["more"]) == ([third], 1)
    assert oldest["first_seen"] < oldest["last_seen"]
    ignored = list_kinds(stage.db, DeadLetterFilter(status=["ignored"]), datetime.now(UTC))
    assert [kind["total"] for kind in ignored["kinds"]] == [1]


@pytest.mark.parametrize("status", [status for status in LetterStatus if status is not LetterStatus.REDRIVEN])
@pytest.mark.parametrize("source", list(LetterStatus))
def test_triage_goes_the_ways_of_the_table_and_no_other(
    stage: Stage, source: LetterStatus, status: LetterStatus
) -> None:
    id_ = add_letter(stage)
    if source is LetterStatus.REDRIVEN:
        redrive(stage, id_)
    elif source is not LetterStatus.PENDING:
        triage(stage.db, DeadLetterFilter(ids=[id_]), source, by="ada")
    if status in TRIAGE[source] or status == source:
        assert triage(stage.db, DeadLetterFilter(ids=[id_]), status, by="ada").changed == (status != source)
        assert letter(stage, id_)["status"] == status
    else:
        with pytest.raises(TransitionRefused, match=f"is {source}"):
            triage(stage.db, DeadLetterFilter(ids=[id_]), status, by="ada")
        assert letter(stage, id_)["status"] == source


def test_nobody_triages_to_redriven(stage: Stage) -> None:
    with pytest.raises(TransitionRefused, match="redrive"):
        triage(stage.db, DeadLetterFilter(ids=[add_letter(stage)]), "redriven", by="ada")


def test_of_those_named_all_are_triaged_or_none(stage: Stage) -> None:
    first, second = add_letter(stage), add_letter(stage)
    redrive(stage, second)
    with pytest.raises(TransitionRefused, match="nothing was changed"):
        triage(stage.db, DeadLetterFilter(ids=[first, second]), "resolved", by="ada")
    with pytest.raises(DeadLetterUnknown):
        triage(stage.db, DeadLetterFilter(ids=[first, str(uuid4())]), "resolved", by="ada")
    assert letter(stage, first)["status"] == "pending"


def test_by_a_filter_those_are_triaged_that_can_be(stage: Stage) -> None:
    first, second = add_letter(stage), add_letter(stage)
    redrive(stage, second)
    selection = DeadLetterFilter(fingerprint=letter(stage, first)["fingerprint"])
    triaged = triage(stage.db, selection, "resolved", by="ada", reason="deployed a fix")
    assert (triaged.changed, triaged.unchanged) == (1, 1)
    row = letter(stage, first)
    assert (row["status"], row["resolved_by"], row["resolution_notes"]) == ("resolved", "ada", "deployed a fix")
    assert row["resolved_at"] is not None


def test_an_order_that_names_nothing_is_refused(stage: Stage) -> None:
    id_ = add_letter(stage)
    for selection in (
        DeadLetterFilter(),
        DeadLetterFilter(status=["pending"]),
        DeadLetterFilter(until=datetime.now(UTC)),
    ):
        with pytest.raises(PayloadRefused, match="every dead letter"):
            triage(stage.db, selection, "ignored", by="ada")
    assert letter(stage, id_)["status"] == "pending"


def test_a_kind_that_returns_after_it_was_resolved_is_open_again(stage: Stage) -> None:
    id_ = add_letter(stage)
    triage(stage.db, DeadLetterFilter(ids=[id_]), "resolved", by="ada")
    stage.db.execute("UPDATE signalbox.dead_letter_jobs SET notified_at = now()")
    add_letter(stage)
    row = letter(stage, id_)
    assert (row["status"], row["resolved_at"], row["notified_at"]) == ("pending", None, None)
    assert row["reopened_at"] is not None


def test_a_kind_that_is_ignored_stays_so_when_it_returns(stage: Stage) -> None:
    id_ = add_letter(stage)
    triage(stage.db, DeadLetterFilter(ids=[id_]), "ignored", by="ada")
    add_letter(stage)
    assert letter(stage, id_)["status"] == "ignored"


def test_only_the_newest_of_a_kind_is_opened_again(stage: Stage) -> None:
    older, newest = add_letter(stage), add_letter(stage)
    triage(stage.db, DeadLetterFilter(ids=[older, newest]), "resolved", by="ada")
    for _ in range(3):
        add_letter(stage)
    assert (letter(stage, older)["status"], letter(stage, newest)["status"]) == ("resolved", "pending")


def test_another_kind_opens_nothing(stage: Stage) -> None:
    id_ = add_letter(stage)
    triage(stage.db, DeadLetterFilter(ids=[id_]), "resolved", by="ada")
    add_letter(stage, "nonsense")
    assert letter(stage, id_)["status"] == "resolved"


def test_two_workers_that_meet_the_same_kinds_at_once_open_each_once(stage: Stage, dsn: str) -> None:
    first, second = add_letter(stage), add_letter(stage, "nonsense")
    kinds = [letter(stage, id_)["fingerprint"] for id_ in (first, second)]
    triage(stage.db, DeadLetterFilter(ids=[first, second]), "resolved", by="ada")

    def reopen(order: list[str]) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute("SELECT signalbox.reopen_kinds(%s)", (order,))

    with ThreadPoolExecutor(2) as threads:
        for future in [threads.submit(reopen, kinds[:: 1 if place % 2 else -1]) for place in range(8)]:
            future.result()
    assert [letter(stage, id_)["status"] for id_ in (first, second)] == ["pending", "pending"]
