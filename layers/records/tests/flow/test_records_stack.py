"""The laptop brings up the deployment with the pack: two files of a patient, one of them after a person's decision."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from signalbox_laptop.home import StackState
from tests.support.story import stack_with_story, wait_for_jobs


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackState]:
    with stack_with_story("records", tmp_path_factory.mktemp("records")) as state:
        wait_for_jobs(state)
        yield state


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
