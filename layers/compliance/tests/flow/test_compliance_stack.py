"""The laptop brings up the deployment with the pack: the story loaded, every rule fired, a link opened."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest
import urllib3

from compliance.job_types import JOB_TYPES
from signalbox.engine_pack import registry_of
from signalbox.testing.rows import runs_of
from signalbox_laptop.home import StackState
from tests.support.laptop import control
from tests.support.story import AT, stack_with_story, wait_for_jobs

TYPES = [job_type.name for job_type in JOB_TYPES]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackState]:
    with stack_with_story("compliance", tmp_path_factory.mktemp("compliance")) as state:
        control(state, "POST", "tick", at=AT.isoformat(), rules=None)
        assert control(state, "GET", "idle?timeout=120")["idle"] is True
        wait_for_jobs(state)
        yield state


@pytest.fixture
def db(story: StackState) -> Iterator[psycopg.Connection]:
    with psycopg.connect(story.database, autocommit=True) as connection:
        yield connection


def test_each_task_finds_something_to_do(db: psycopg.Connection) -> None:
    own = set(registry_of(["compliance"]).names()) - set(registry_of([]).names())
    runs = [run for task in sorted(own) for run in runs_of(db, task)]
    assert {run["job_type"] for run in runs} == own
    assert [run["job_type"] for run in runs if run["status"] != "succeeded" or not run["items"]] == []


def test_each_job_type_is_completed(db: psycopg.Connection) -> None:
    found = db.execute("SELECT job_type, status FROM signalbox.jobs WHERE job_type = ANY (%s)", (TYPES,)).fetchall()
    assert {job_type for job_type, _ in found} == set(TYPES)
    assert {status for _, status in found} == {"completed"}


def test_people_are_told_by_mail_and_by_text(db: psycopg.Connection) -> None:
    told: dict[str, int] = dict(
        db.execute("SELECT channel, count(*)::int FROM compliance.notifications GROUP BY 1").fetchall()
    )
    delivered = db.execute(
        "SELECT payload ->> 'channel', count(*)::int FROM signalbox.jobs "
        "WHERE job_type = 'deliver_notification' AND payload ->> 'notification_id' IN "
        "(SELECT id::text FROM compliance.notifications) GROUP BY 1"
    ).fetchall()
    assert {name.upper(): count for name, count in delivered} == {"EMAIL": told["EMAIL"], "SMS": told["SMS"]}


def test_the_link_in_the_mail_opens_the_pack(story: StackState, db: psycopg.Connection) -> None:
    calls = urllib3.request("GET", f"{story.stand_ins['ses']}/_stand_in/calls").data.decode()
    [link] = set(re.findall(r"http://[\w.:]+/shared/packs/[\w-]+", calls))
    assert link.startswith(f"{story.api}/")
    pack = urllib3.request("GET", link)
    assert (pack.status, pack.data[:2]) == (200, b"PK")
    assert db.execute("SELECT view_count FROM compliance.pack_distributions").fetchall() == [(1,)]
    db.execute("UPDATE compliance.pack_distributions SET revoked_at = now()")
    assert urllib3.request("GET", link, redirect=False).status == 410


def test_the_story_is_what_it_says(db: psycopg.Connection) -> None:
    one = {
        "the doubtful obligation": "SELECT count(*) FROM compliance.review_queue_items",
        "the altered evidence": "SELECT integrity_errors_count FROM compliance.audit_packs",
        "the run hours": "SELECT count(DISTINCT entity_id) FROM compliance.notifications WHERE alert_type = 'BREACH'",
        "the suggestion": "SELECT count(*) FROM compliance.cross_sell_triggers",
        "the ended assignment": (
            "SELECT count(*) FROM compliance.consultant_client_assignments WHERE status <> 'ACTIVE'"
        ),
    }
    found = {name: db.execute(query.encode()).fetchall() for name, query in one.items()}
    assert found == {key: [(1,)] for key in one}
    assert db.execute("SELECT valid_count, error_count FROM compliance.excel_imports").fetchall() == [(2, 2)]
