"""Operators do not see the values of fields that a job type declares sensitive; the job does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from signalbox.errors import JobRefused
from signalbox.packs.registries import JobTypeRegistry
from signalbox.testing.stage import Stage
from tests.support.http_api import client_of
from tests.support.jobs import TEST_JOB_TYPES


@pytest.fixture
def stage(stage: Stage) -> Stage:
    types = [replace(one, sensitive=frozenset({"word"})) for one in TEST_JOB_TYPES]
    stage.app = replace(stage.app, resources=replace(stage.app.resources, job_types=JobTypeRegistry(types)))
    return stage


def test_sensitive_fields_are_hidden_wherever_a_payload_is_shown(stage: Stage) -> None:
    job_id = stage.submit("obey", payload={"word": "fail_for_good", "seconds": 0})
    stage.operate("create_schedule", name="s", job_type="obey", payload={"word": "complete"}, every_seconds=3600)
    stage.work(job_id)
    letter_id = stage.dead_letter(job_id)["id"]
    http = client_of(stage)
    seen = [http("GET", f"/v1/{path}") for path in (f"jobs/{job_id}", f"dead-letters/{letter_id}", "schedules")]
    assert [answer.status for answer in seen] == [200] * 3
    assert seen[0].body["job"]["payload"] == {"word": "[redacted]", "seconds": 0}
    assert not any("fail_for_good" in str(answer.body) or "complete'" in str(answer.body) for answer in seen[:2])
    assert seen[2].body["schedules"][0]["payload_template"]["word"] == "[redacted]"
    assert stage.job(job_id)["payload"]["word"] == "fail_for_good"


@pytest.mark.parametrize("operation", ["list_jobs", "cancel_jobs", "retry_jobs", "pause"])
def test_jobs_are_not_found_by_a_sensitive_field(stage: Stage, operation: str) -> None:
    search: dict[str, Any] = {"job_type": "obey", "since": "2026-01-01T00:00:00Z", "payload": {"word": "complete"}}
    with pytest.raises(JobRefused, match="field 'word' of job type 'obey' is sensitive"):
        stage.operate(operation, **search)


def test_audit_log_has_the_names_of_a_payloads_fields_alone(stage: Stage) -> None:
    search: dict[str, Any] = {"job_type": "obey", "since": "2026-01-01T00:00:00Z", "payload": {"seconds": 7}}
    stage.operate("cancel_jobs", **search)
    [(detail,)] = stage.db.execute("SELECT detail FROM signalbox.audit_log").fetchall()
    assert detail["selection"]["payload"] == ["seconds"]
