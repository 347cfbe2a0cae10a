"""Whatever a job answers, raises or leaves behind: the others of its batch, and those after it, come to their ends."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from datetime import timedelta

import psycopg
import pytest

from signalbox.errors import DatabaseUnavailable
from signalbox.jobs.dependency import Dependency
from signalbox.packs.job_type import JobType
from signalbox.worker import core, timeout
from tests.support.jobs import TEST_JOB_TYPES
from tests.support.jobs.misbehave import DEEDS, ODD, UNRECORDABLE
from tests.support.lane_stand_in import LaneStandIn
from tests.support.outage import away
from tests.support.stage import Stage
from tests.support.workshop import Workshop

MISBEHAVE = JobType("misbehave", "harms", "tests.support.jobs.misbehave", timeout=timedelta(milliseconds=300))


@pytest.fixture
def workshop(stage: Stage, db: psycopg.Connection, lanes: LaneStandIn) -> Workshop:
    db.execute("CREATE TABLE notes (job_id uuid, subject text)")
    db.execute("GRANT SELECT, INSERT ON notes TO signalbox_writer")
    return Workshop(stage, db, (*TEST_JOB_TYPES, MISBEHAVE))


@pytest.mark.parametrize("deed", UNRECORDABLE | ODD)
def test_one_bad_job_harms_neither_its_batch_nor_the_next(
    workshop: Workshop, deed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeout, "AGAIN_AFTER_SECONDS", 0.1)
    before, bad = workshop.obey("complete"), misbehaving(workshop, deed)
    beside, following = [workshop.obey("complete"), note(workshop)], [workshop.obey("complete"), note(workshop)]
    assert workshop.work(before, bad, *beside) == {"batchItemFailures": []}
    assert statuses(workshop, before, *beside) == ["completed"] * 3
    assert workshop.job(bad)["status"] != "running"
    workshop.work(*following)
    assert statuses(workshop, *following) == ["completed"] * 2
    assert noted(workshop) == 2


@pytest.mark.parametrize("deed", UNRECORDABLE)
def test_an_answer_that_can_not_be_recorded_is_a_failure_that_says_so(workshop: Workshop, deed: str) -> None:
    bad = misbehaving(workshop, deed)
    workshop.work(bad)
    letter = workshop.dead_letter(bad)
    assert (letter["failure_reason"], letter["error_type"]) == ("permanent", "Permanent")
    assert re.search("a job answered|can't be recorded", letter["final_error_message"])


def test_a_setting_that_a_job_has_left_behind_does_not_keep_ends_from_being_recorded(workshop: Workshop) -> None:
    before, bad = workshop.obey("complete"), misbehaving(workshop, "no time for statements")
    assert workshop.work(before, bad) == {"batchItemFailures": []}
    assert statuses(workshop, before, bad) == ["completed"] * 2


def test_a_text_that_only_looks_like_a_nul_is_a_result(workshop: Workshop) -> None:
    job_id = misbehaving(workshop, "nothing wrong")
    workshop.work(job_id)
    assert workshop.job(job_id)["result"] == "\\u0000"


def test_a_time_out_that_a_job_catches_comes_again(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeout, "AGAIN_AFTER_SECONDS", 0.1)
    job_id, began = misbehaving(workshop, "every error caught"), time.monotonic()
    workshop.work(job_id)
    assert time.monotonic() - began < 30


def test_a_time_out_that_is_caught_in_a_statement_is_what_is_told(workshop: Workshop) -> None:
    job_id = misbehaving(workshop, "an error caught in a statement")
    workshop.work(job_id)
    assert [attempt["status"] for attempt in workshop.attempts(job_id)] == ["timeout"]


def test_interrupt_that_a_job_raises_is_its_own_failure(workshop: Workshop) -> None:
    before, bad, beside = workshop.obey("complete"), misbehaving(workshop, "interrupted"), note(workshop)
    workshop.work(before, bad, beside)
    assert statuses(workshop, before, bad, beside) == ["completed", "pending", "completed"]
    assert "called for the end of its process: KeyboardInterrupt" in workshop.job(bad)["error_details"]["message"]


def test_ends_are_known_while_a_long_job_is_at_work(
    workshop: Workshop, lanes: LaneStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for them is sent all the same, once the batch has ended."""
    before, seen = workshop.obey("complete"), []

    def look(_: object) -> None:
        while workshop.job(before)["status"] == "running":
            time.sleep(0.01)
        seen.append(workshop.job(before)["status"])

    monkeypatch.setitem(DEEDS, "nothing wrong", look)
    monkeypatch.setattr(core, "RECORD_AFTER_SECONDS", 0.02)
    long = workshop.submit("misbehave", payload={"deed": "nothing wrong"}, timeout=timedelta(seconds=20)).id
    child = workshop.submit(depends_on=[Dependency(before)]).id
    workshop.work(before, long)
    assert seen == ["completed"]
    assert statuses(workshop, long, child) == ["completed", "pending"]
    assert [notice["job_id"] for notice in lanes.take()] == [child]


def test_ends_outlast_a_while_without_the_database(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else all of the batch would be done again, once its lease has run out."""
    with ExitStack() as while_at_work:
        monkeypatch.setitem(DEEDS, "nothing wrong", lambda _: while_at_work.enter_context(away(workshop.db)))
        jobs = workshop.obey("complete"), misbehaving(workshop, "nothing wrong"), workshop.obey("complete")
        workshop.work(*jobs)
    assert statuses(workshop, *jobs) == ["completed"] * 3


def test_messages_wait_in_their_worker_for_a_database_that_is_away(workshop: Workshop) -> None:
    """Those that come back are hidden for most of an hour."""
    jobs = workshop.obey("complete"), note(workshop)
    with away(workshop.db):
        assert workshop.work(*jobs) == {"batchItemFailures": []}
    assert statuses(workshop, *jobs) == ["completed"] * 2


def test_a_database_that_stays_away_is_told_in_time(workshop: Workshop) -> None:
    job_id = workshop.obey("complete")
    with away(workshop.db), pytest.raises(DatabaseUnavailable):
        workshop.work(job_id, seconds=0.6)
    assert workshop.job(job_id)["status"] == "queued"


def misbehaving(workshop: Workshop, deed: str) -> str:
    return workshop.submit("misbehave", payload={"deed": deed}).id


def note(workshop: Workshop) -> str:
    return workshop.submit("note_job").id


def noted(workshop: Workshop) -> int:
    return len(workshop.db.execute("SELECT FROM notes").fetchall())


def statuses(workshop: Workshop, *ids: str) -> list[str]:
    return [workshop.job(id_)["status"] for id_ in ids]
