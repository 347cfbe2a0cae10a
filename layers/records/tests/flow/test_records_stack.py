"""The laptop brings up the deployment with the pack: two files of a patient, one of them after a person's decision."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest

from samples.records import load_story
from signalbox_laptop.home import StackState
from signalbox_laptop.up import StackOptions, down, up
from tests.support.laptop import quiet
from tests.support.template import SWITCHES

AT = datetime(2026, 1, 5, 2, 30, tzinfo=UTC)
ALONE = dict.fromkeys(SWITCHES, "off") | {"RecordsPack": "on"}
OPEN = "SELECT job_type, status FROM signalbox.jobs WHERE completed_at IS NULL"
_PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackState]:
    home = tmp_path_factory.mktemp("records")
    state = up(StackOptions(home=home, port=0, clock=False, durable=False, parameters=ALONE), quiet)
    assert load_story(state, AT)
    until = time.monotonic() + _PATIENCE_SECONDS
    with psycopg.connect(state.database, autocommit=True) as connection:
        while (left := connection.execute(OPEN).fetchall()) and time.monotonic() < until:
            time.sleep(0.2)
    assert left == []
    yield state
    down(home, quiet)


@pytest.fixture
def db(story: StackState) -> Iterator[psycopg.Connection]:
    with psycopg.connect(story.database, autocommit=True) as connection:
        yield connection


def test_both_files_are_completed_by_four_jobs_each(db: psycopg.Connection) -> None:
    assert db.execute("SELECT status, count(*) FROM records.shell_files GROUP BY 1").fetchall() == [("completed", 2)]
    found = db.execute("SELECT job_type, status, count(*) FROM signalbox.jobs GROUP BY 1, 2 ORDER BY 1").fetchall()
    assert found == [("ai_processing", "completed", 6), ("shell_file_processing", "completed", 2)]


def test_scan_waited_for_a_person(db: psycopg.Connection) -> None:
    rows = db.execute(
        "SELECT contamination_risk_score::float, review_decision FROM records.profile_classification_audit ORDER BY 1"
    ).fetchall()
    assert rows == [(0, None), (0.5, "approved")]


def test_letter_became_rows_and_a_narrative(db: psycopg.Connection) -> None:
    assert db.execute("SELECT name, code FROM records.patient_conditions").fetchall() == [("Asthma", "J45.9")]
    assert db.execute("SELECT name FROM records.patient_medications").fetchall() == [("Salbutamol",)]
    narratives = db.execute("SELECT narrative FROM records.clinical_narratives ORDER BY 1").fetchall()
    assert [text[:6] for (text,) in narratives] == ["Asthma", "Nothin"]
