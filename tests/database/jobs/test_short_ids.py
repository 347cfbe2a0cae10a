"""Operations take the start of an id where one job, dead letter or backfill alone has it."""

from __future__ import annotations

from typing import Any

import pytest

from signalbox.errors import BackfillRefused, DeadLetterUnknown, IdRefused, JobUnknown, SignalboxError
from signalbox.testing.rows import insert_job
from signalbox.testing.stage import Stage

ONE, TWO, THREE = (f"01a1f5ab-6ece-7d78-aa22-f7a61e63bb{end}" for end in ("a7", "a8", "b0"))
OTHER = "01a1f5ab-6ecf-7d78-aa22-f7a61e63bba7"


@pytest.fixture
def jobs(stage: Stage) -> None:
    for id_ in (OTHER, ONE, TWO, THREE):
        insert_job(stage.db, {"id": id_, "status": "paused", "parent_job_id": OTHER if id_ == TWO else None})


@pytest.mark.parametrize("start", [ONE, THREE[:35], OTHER[:13], OTHER[:14], OTHER[:24]])
def test_start_of_one_id_is_enough(stage: Stage, jobs: None, start: str) -> None:
    assert stage.operate("show_job", id=start)["job"]["id"].startswith(start)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (ONE[:35], f"is the start of {ONE}, of {TWO}: give more"),
        (ONE[:8], f"is the start of {ONE}, of {TWO} and of others: give more"),
        ("01a1f5a", "not the id of a job"),
        ("01A1F5AB", "not the id of a job"),
        ("01a1f5ab6", "not the id of a job"),
        ("01a1f5ab-6ece7", "not the id of a job"),
        (ONE + "0", "not the id of a job"),
        ("01a1f5a%", "not the id of a job"),
    ],
)
def test_start_that_is_none_or_of_several_is_refused(stage: Stage, jobs: None, start: str, message: str) -> None:
    with pytest.raises(IdRefused, match=message):
        stage.operate("show_job", id=start)


@pytest.mark.parametrize(
    ("operation", "params", "error"),
    [
        ("show_job", {"id": "01a1f5ac"}, JobUnknown),
        ("cancel_jobs", {"ids": [OTHER[:13], "01a1f5ac"]}, JobUnknown),
        ("list_jobs", {"parent": "01a1f5ac"}, JobUnknown),
        ("show_dead_letter", {"id": "01a1f5ac"}, DeadLetterUnknown),
        ("redrive", {"ids": ["01a1f5ac"]}, DeadLetterUnknown),
        ("cancel_backfill", {"id": "01a1f5ac"}, BackfillRefused),
    ],
)
def test_start_that_nothing_has_is_refused(
    stage: Stage, jobs: None, operation: str, params: dict[str, Any], error: type[SignalboxError]
) -> None:
    with pytest.raises(error, match=r"no .* has an id that starts with 01a1f5ac"):
        stage.operate(operation, **params)
    assert stage.status(OTHER) == "paused"


def test_job_named_twice_by_two_starts_is_cancelled_once(stage: Stage, jobs: None) -> None:
    assert stage.operate("cancel_jobs", ids=[OTHER[:13], OTHER[:18], OTHER])["cancelled"] == 1
    assert [stage.status(id_) for id_ in (ONE, OTHER)] == ["paused", "cancelled"]


def test_children_and_pages_are_found_by_starts(stage: Stage, jobs: None) -> None:
    assert [job["id"] for job in stage.operate("list_jobs", parent=OTHER[:13])["jobs"]] == [TWO]
    assert [job["id"] for job in stage.operate("list_jobs", before_id=THREE[:35])["jobs"]] == [TWO, ONE]


def test_dead_letter_is_shown_and_triaged_by_its_start(stage: Stage) -> None:
    job_id = stage.submit("obey", payload={"word": "fail_for_good"})
    stage.work(job_id)
    [letter] = stage.operate("list_dead_letters")["dead_letters"]
    assert stage.operate("show_dead_letter", id=letter["id"][:8])["dead_letter"]["id"] == letter["id"]
    assert stage.operate("triage_dead_letters", ids=[letter["id"][:8]], decision="ignored")["changed"] == 1


def test_backfill_is_shown_and_paused_by_its_start(stage: Stage) -> None:
    period: dict[str, Any] = {"from": "2026-03-10T00:00:00Z", "to": "2026-03-10T05:00:00Z"}
    made = stage.operate("create_backfill", task="prune_history", **period)["backfill"]
    assert stage.operate("show_backfill", id=made["id"][:8])["backfill"]["id"] == made["id"]
    assert stage.operate("pause_backfill", id=made["id"][:8])["backfill"]["status"] == "paused"
