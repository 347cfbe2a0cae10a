"""Lists and previews read what they show, however many jobs have ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from signalbox.dead_letters.letters import preview_triage
from signalbox.errors import DeadLetterUnknown, TransitionRefused
from signalbox.operate import listing
from signalbox.operate.filters import DeadLetterFilter, JobFilter
from signalbox.operate.listing import SQL, list_jobs, preview
from signalbox.testing.rows import id_of
from signalbox.testing.stage import Stage
from tests.support.dead_letters import add_letter

DAY = timedelta(days=1)
ENDED = (
    "INSERT INTO signalbox.jobs (job_type, lane, max_attempts, timeout_ms, status, completed_at, updated_at) "
    "SELECT 'do_nothing', 'normal', 3, 1000, 'completed', now(), now() FROM generate_series(1, %s)"
)


def plan(db: psycopg.Connection[Any], query: str, **given: Any) -> str:
    page = {"limit": 50, "before_id": None, "statuses": ["completed"], "from_id": None, "until_id": None}
    rows = db.execute(f"EXPLAIN {SQL[query]}".encode(), {**JobFilter(**given).values, **page}).fetchall()
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("query", ["list_jobs", "pick"])
def test_page_of_jobs_is_read_along_the_primary_key(db: psycopg.Connection[Any], query: str) -> None:
    db.execute(ENDED, (20_000,))
    db.execute("VACUUM ANALYZE signalbox.jobs")
    found = plan(db, query)
    assert "Index Scan Backward using jobs_pkey" in found
    assert "Sort" not in found


@pytest.mark.parametrize(
    ("given", "index"),
    [
        ({"group": "g"}, "jobs_of_group_by_id"),
        ({"tenant": "t"}, "jobs_of_tenant"),
        ({"cap_key": "k"}, "jobs_of_cap_key"),
        ({"parent": str(uuid4())}, "jobs_of_parent_by_id"),
        ({"group": "g", "tenant": "t"}, "jobs_of_group_by_id"),
    ],
)
def test_page_of_a_frequent_value_does_not_read_the_newer_jobs(
    db: psycopg.Connection[Any], given: dict[str, str], index: str
) -> None:
    columns = {"parent": "parent_job_id", "group": "job_group"}
    names, values = ", ".join(columns.get(name, name) for name in given), list(given.values())
    fill = ENDED.replace("updated_at)", f"updated_at, {names})").replace(
        "now(), now()", "now(), now()" + ", %s" * len(values)
    )
    db.execute(fill.encode(), (*values, 10_000))
    db.execute(ENDED, (10_000,))
    db.execute("VACUUM ANALYZE signalbox.jobs")
    found = plan(db, "list_jobs", **given)
    assert f"Index Scan Backward using {index}" in found
    assert "Sort" not in found


@pytest.mark.parametrize("status", ["pending", "queued"])
def test_no_job_that_waits_is_found_without_reading_those_that_have_ended(
    db: psycopg.Connection[Any], status: str
) -> None:
    db.execute(ENDED, (20_000,))
    db.execute("VACUUM ANALYZE signalbox.jobs")
    found = plan(db, "list_jobs", status=status)
    assert "jobs_to_send" in found
    assert "jobs_pkey" not in found


def test_page_of_long_ago_has_jobs_with_ids_of_any_kind(stage: Stage) -> None:
    """The ids are made by a clock that is fast, by one that is right, and at random."""
    now = datetime.now(UTC)
    ids = ["9f1c1d9e-0000-4000-8000-000000000001", id_of(now - 9 * DAY), id_of(now - 10 * DAY)]
    for id_ in ids:
        stage.submit("do_nothing", id=id_)
    stage.submit("do_nothing")
    stage.db.execute("UPDATE signalbox.jobs SET created_at = %s WHERE id = ANY (%s::uuid[])", (now - 10 * DAY, ids))
    old = JobFilter(until=now - 10 * DAY + timedelta(minutes=1))
    assert [job["id"] for job in list_jobs(stage.db, old, 10)] == ids
    assert [job["id"] for job in list_jobs(stage.db, old, 2)] == ids[:2]
    assert [job["id"] for job in list_jobs(stage.db, old, 2, before_id=ids[1])] == ids[2:]


@pytest.mark.parametrize(("number", "counted", "more"), [(2, 2, False), (3, 3, False), (4, 3, True)])
def test_preview_counts_up_to_a_number_and_says_whether_there_are_more(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, number: int, counted: int, more: bool
) -> None:
    monkeypatch.setattr(listing, "MOST_COUNTED", 3)
    for _ in range(number):
        stage.submit("do_nothing", tenant="acme")
    seen = preview(stage.db, stage.job_types, JobFilter(tenant="acme"))
    assert (seen.counts, seen.more) == ({"queued": counted}, more)


def test_many_that_have_ended_hide_none_that_an_action_would_change(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_COUNTED", 3)
    stage.db.execute(ENDED, (10,))
    for delay in (None, None, None, None, DAY):
        stage.submit("do_nothing", delay=delay)
    seen = preview(stage.db, stage.job_types, JobFilter(job_type="do_nothing"))
    assert (seen.counts, seen.more) == ({"completed": 3, "pending": 1, "queued": 3}, True)


def test_preview_of_a_triage_counts_what_would_change(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [str(add_letter(stage, tenant="acme")) for _ in range(2)]
    selection = DeadLetterFilter(tenant="acme")
    assert preview_triage(stage.db, selection, "resolved") == {"count": 2, "more": False}
    assert preview_triage(stage.db, selection, "pending") == {"count": 0, "more": False}
    monkeypatch.setattr(listing, "MOST_COUNTED", 1)
    assert preview_triage(stage.db, selection, "resolved") == {"count": 1, "more": True}
    assert preview_triage(stage.db, DeadLetterFilter(ids=ids[:1]), "ignored") == {"count": 1, "more": False}
    with pytest.raises(DeadLetterUnknown):
        preview_triage(stage.db, DeadLetterFilter(ids=[*ids, str(uuid4())]), "resolved")
    with pytest.raises(TransitionRefused):
        preview_triage(stage.db, selection, "redriven")
