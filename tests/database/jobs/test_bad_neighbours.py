"""A misbehaving job does not stop the others of its batch, or later ones, from ending."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from datetime import timedelta

import pytest

from signalbox.errors import DatabaseUnavailable
from signalbox.jobs.dependency import Dependency
from signalbox.packs.job_type import JobType
from signalbox.packs.outcome import JobTimedOut
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import Stage
from signalbox.worker import core, timeout
from tests.support.jobs import obeying
from tests.support.jobs.misbehave import DEEDS, ODD, UNRECORDABLE
from tests.support.outage import away, briefly_away

MISBEHAVE = JobType("misbehave", "harms", "tests.support.jobs.misbehave", timeout=timedelta(milliseconds=300))


@pytest.fixture
def stage(stage: Stage, notes: None) -> Stage:
    return stage.with_job_types(MISBEHAVE)


@pytest.mark.parametrize("deed", UNRECORDABLE | ODD)
def test_one_bad_job_harms_neither_its_batch_nor_the_next(
    stage: Stage, deed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeout, "AGAIN_AFTER_SECONDS", 0.1)
    before, bad = stage.submit(obeying("complete")), misbehaving(stage, deed)
    beside, following = (
        [stage.submit(obeying("complete")), note(stage)],
        [stage.submit(obeying("complete")), note(stage)],
    )
    assert stage.work(before, bad, *beside) == {"batchItemFailures": []}
    assert stage.statuses(before, *beside) == ["completed"] * 3
    assert stage.job(bad)["status"] != "running"
    stage.work(*following)
    assert stage.statuses(*following) == ["completed"] * 2
    assert noted(stage) == 2


@pytest.mark.parametrize("deed", UNRECORDABLE)
def test_an_answer_that_can_not_be_recorded_is_a_failure_that_says_so(stage: Stage, deed: str) -> None:
    bad = misbehaving(stage, deed)
    stage.work(bad)
    letter = stage.dead_letter(bad)
    assert (letter["failure_reason"], letter["error_type"]) == ("permanent", "Permanent")
    assert re.search("a job returned|can't be recorded", letter["final_error_message"])


def test_setting_left_behind_by_a_job_does_not_stop_recording(stage: Stage) -> None:
    before, bad = stage.submit(obeying("complete")), misbehaving(stage, "no time for statements")
    assert stage.work(before, bad) == {"batchItemFailures": []}
    assert stage.statuses(before, bad) == ["completed"] * 2


def test_a_text_that_only_looks_like_a_nul_is_a_result(stage: Stage) -> None:
    job_id = misbehaving(stage, "nothing wrong")
    stage.work(job_id)
    assert stage.job(job_id)["result"] == "\\u0000"


def test_a_time_out_that_a_job_catches_comes_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeout, "AGAIN_AFTER_SECONDS", 0.1)
    caught: list[JobTimedOut] = []

    def catch_three(_: object) -> None:
        until = time.monotonic() + 20
        while len(caught) < 3 and time.monotonic() < until:
            try:
                time.sleep(0.01)
            except JobTimedOut as error:
                caught.append(error)

    monkeypatch.setitem(DEEDS, "nothing wrong", catch_three)
    job_id = misbehaving(stage, "nothing wrong")
    stage.work(job_id)
    assert len(caught) == 3


def test_time_out_that_is_caught_in_a_statement_is_reported(stage: Stage) -> None:
    job_id = misbehaving(stage, "an error caught in a statement")
    stage.work(job_id)
    assert [attempt["status"] for attempt in stage.attempts(job_id)] == ["timeout"]


def test_interrupt_that_a_job_raises_is_its_own_failure(stage: Stage) -> None:
    before, bad, beside = stage.submit(obeying("complete")), misbehaving(stage, "interrupted"), note(stage)
    stage.work(before, bad, beside)
    assert stage.statuses(before, bad, beside) == ["completed", "pending", "completed"]
    assert "called for the end of its process: KeyboardInterrupt" in stage.job(bad)["error_details"]["message"]


def test_ends_are_known_while_a_long_job_is_at_work(
    stage: Stage, lanes: AwsStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their dependents are sent once the batch has ended."""
    before, seen = stage.submit(obeying("complete")), []

    def look(_: object) -> None:
        while stage.job(before)["status"] == "running":
            time.sleep(0.01)
        seen.append(stage.job(before)["status"])

    monkeypatch.setitem(DEEDS, "nothing wrong", look)
    monkeypatch.setattr(core, "RECORD_AFTER_SECONDS", 0.02)
    long = stage.submit("misbehave", payload={"deed": "nothing wrong"}, timeout=timedelta(seconds=20))
    child = stage.submit("do_nothing", depends_on=[Dependency(before)])
    stage.work(before, long)
    assert seen == ["completed"]
    assert stage.statuses(long, child) == ["completed", "pending"]
    assert [message["job_id"] for message in lanes.take()] == [child]


def test_ends_outlast_a_while_without_the_database(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the whole batch would run again after its lease expires."""
    with ExitStack() as while_at_work:
        monkeypatch.setitem(DEEDS, "nothing wrong", lambda _: while_at_work.enter_context(briefly_away(stage.db)))
        jobs = stage.submit(obeying("complete")), misbehaving(stage, "nothing wrong"), stage.submit(obeying("complete"))
        stage.work(*jobs)
    assert stage.statuses(*jobs) == ["completed"] * 3


def test_messages_wait_in_their_worker_for_a_database_that_is_away(stage: Stage) -> None:
    """Returned messages stay hidden for most of an hour."""
    jobs = stage.submit(obeying("complete")), note(stage)
    with briefly_away(stage.db):
        assert stage.work(*jobs) == {"batchItemFailures": []}
    assert stage.statuses(*jobs) == ["completed"] * 2


def test_unavailable_database_is_reported_before_the_time_out(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    job_id = stage.submit(obeying("complete"))
    with away(stage.db), pytest.raises(DatabaseUnavailable):
        stage.work(job_id, seconds=0.6)
    assert '"DatabaseUnreachable":[1.0]' in capsys.readouterr().out
    assert stage.job(job_id)["status"] == "queued"


def misbehaving(stage: Stage, deed: str) -> str:
    return stage.submit("misbehave", payload={"deed": deed})


def note(stage: Stage) -> str:
    return stage.submit("note_job")


def noted(stage: Stage) -> int:
    return len(stage.db.execute("SELECT FROM notes").fetchall())
