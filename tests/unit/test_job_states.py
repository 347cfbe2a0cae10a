"""The table of transitions, the database's trigger and its CHECK constraint agree."""

from __future__ import annotations

import re
from pathlib import Path

import signalbox
from signalbox.jobs.status import FINAL, TRANSITIONS, JobStatus

SCHEMA = (Path(signalbox.__file__).parent / "migrations/0001_baseline.sql").read_text("utf-8")


def test_the_trigger_lets_pass_what_the_table_has() -> None:
    body = SCHEMA[SCHEMA.index("CREATE TRIGGER job_transition_known") :]
    pairs = {tuple(pair.split()) for pair in re.findall(r"'([a-z]+ [a-z]+)'", body[: body.index("EXECUTE FUNCTION")])}
    assert pairs == {(state, after) for state, states in TRANSITIONS.items() for after in states}


def test_the_constraint_knows_the_states() -> None:
    listed = re.search(r"CONSTRAINT job_status_known\s+CHECK \(status IN \((.*?)\)\)", SCHEMA)
    assert listed is not None
    assert set(re.findall(r"'(\w+)'", listed[1])) == set(JobStatus)


def test_completed_and_cancelled_are_for_good_and_failed_only_leads_back() -> None:
    assert {state for state, states in TRANSITIONS.items() if not states} == {JobStatus.COMPLETED, JobStatus.CANCELLED}
    assert TRANSITIONS[JobStatus.FAILED] == {JobStatus.PENDING}
    assert {JobStatus.COMPLETED, JobStatus.CANCELLED, JobStatus.FAILED} == FINAL
