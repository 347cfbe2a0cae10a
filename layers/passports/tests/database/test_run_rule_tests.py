"""The tests of rules run in pieces, are written down once, and validate a draft that passes enough of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from passports.rules import run_rule_tests
from signalbox.errors import JobRefused
from signalbox.packs.refusals import class_of
from signalbox.testing.rows import select
from signalbox.testing.stage import Stage
from tests.support.passport_rows import RULES, Tenant, events_of
from tests.support.rule_sources import suite_of

MASS = {"type": "Battery", "key": "a", "payload": {"mass_kg": {"$var": "m"}}}
# It fails wherever it draws a 0, since the check wants a mass.
SOMETIMES = {"name": "sometimes", "vars": {"m": ["integer", 0, 9]}, "facts": [MASS]}


def passing(cases: int, name: str = "mass") -> dict[str, Any]:
    expect = {"values": {"mass_kg": {"$var": "m"}}}
    return {"name": name, "repeat": cases, "vars": {"m": ["integer", 1, 100]}, "facts": [MASS], "expect": expect}


def submit(stage: Stage, tenant: Tenant, version_id: str, **payload: Any) -> str:
    return stage.submit("run_rule_tests", payload={"rule_package_version_id": version_id} | payload, tenant=tenant.id)


def status_of(db: psycopg.Connection[Any], version_id: str) -> str:
    [row] = select(db, "SELECT status FROM passports.rule_package_versions WHERE id = %s", version_id)
    return str(row["status"])


def runs_of(db: psycopg.Connection[Any], version_id: str) -> list[dict[str, Any]]:
    return select(db, "SELECT * FROM passports.rule_tests_runs WHERE rule_package_version_id = %s", version_id)


@pytest.mark.parametrize(("cases", "status", "becomes"), [(499, "FAILED", "DRAFT"), (500, "PASSED", "VALIDATED")])
def test_five_hundred_passed_cases_validate_a_draft(
    stage: Stage, tenant: Tenant, cases: int, status: str, becomes: str
) -> None:
    version_id = tenant.rules(status="DRAFT", tests=suite_of(passing(cases - 1), passing(1, "one")))
    job_id = submit(stage, tenant, version_id, seed=-(2**63))
    job = stage.finish(job_id)
    run = {"run_id": job_id, "status": status, "total_cases": cases}
    assert (job["status"], job["result"]) == (
        "completed",
        {
            "rule_package_version_id": version_id,
            **run,
            "passed_count": cases,
            "failed_count": 0,
            "first_failure": None,
            "validated": becomes == "VALIDATED",
        },
    )
    assert status_of(tenant.db, version_id) == becomes
    [row] = runs_of(tenant.db, version_id)
    assert (str(row["id"]), str(row["tenant_id"]), row["seed"], row["first_failure"]) == (
        job_id, tenant.id, -(2**63), None)  # fmt: skip
    assert (row["status"], row["total_cases"], row["passed_count"], row["failed_count"]) == (status, cases, cases, 0)
    assert events_of(tenant.db, version_id) == [("TESTS_RUN", run | {"passed": cases})]


def test_first_failure_is_kept_and_nothing_validated(stage: Stage, tenant: Tenant) -> None:
    many = SOMETIMES | {"repeat": 700}
    version_id = tenant.rules(status="DRAFT", tests=suite_of(passing(500), many))
    result = stage.finish(submit(stage, tenant, version_id))["result"]
    first = {"test_name": "sometimes", "case": 1, "error": "check mass_known fails, which was not expected"}
    assert result["first_failure"] | {"case": 1} == first
    assert result["failed_count"] + result["passed_count"] == result["total_cases"] == 1200
    assert 0 < result["failed_count"] < 700
    [run] = runs_of(tenant.db, version_id)
    assert (result["status"], run["status"], run["first_failure"]) == ("FAILED", "FAILED", result["first_failure"])
    assert (status_of(tenant.db, version_id), result["validated"]) == ("DRAFT", False)


def test_suite_without_tests_fails(stage: Stage, tenant: Tenant) -> None:
    result = stage.finish(submit(stage, tenant, tenant.rules(status="DRAFT")))["result"]
    assert (result["status"], result["total_cases"], result["first_failure"]) == ("FAILED", 0, None)


@pytest.mark.parametrize("status", ["VALIDATED", "PUBLISHED"])
def test_only_a_draft_is_validated(stage: Stage, tenant: Tenant, status: str) -> None:
    version_id = tenant.rules(status=status, tests=suite_of(passing(500)))
    result = stage.finish(submit(stage, tenant, version_id))["result"]
    assert (result["status"], result["validated"], status_of(tenant.db, version_id)) == ("PASSED", False, status)


def test_failed_run_leaves_validated_rules_as_they_are(stage: Stage, tenant: Tenant) -> None:
    version_id = tenant.rules(status="VALIDATED", tests=suite_of(passing(499)))
    assert stage.finish(submit(stage, tenant, version_id))["result"]["status"] == "FAILED"
    assert status_of(tenant.db, version_id) == "VALIDATED"


def test_pieces_of_a_thousand_cases_come_to_the_same(stage: Stage, tenant: Tenant) -> None:
    version_id = tenant.rules(status="DRAFT", tests=suite_of(passing(1500), SOMETIMES | {"repeat": 1000}))
    job_id = submit(stage, tenant, version_id)
    cursors = [stage.step(job_id)["cursor"] for _ in range(2)]
    assert [one["passed"] + one["failed"] for one in cursors] == [1000, 2000]
    assert runs_of(tenant.db, version_id) == []
    result = stage.step(job_id)["result"]
    assert result["total_cases"] == 2500
    assert result["first_failure"] == cursors[1]["first_failure"]
    alone = tenant.rules(status="DRAFT", tests=suite_of(SOMETIMES | {"repeat": 1000}))
    again = stage.finish(submit(stage, tenant, alone))["result"]
    assert [again[name] for name in ("failed_count", "first_failure")] == [
        result[name] for name in ("failed_count", "first_failure")
    ]


@pytest.mark.parametrize("column", ["rules_source", "tests_source"])
def test_source_that_changes_between_pieces_ends_the_job(stage: Stage, tenant: Tenant, column: str) -> None:
    version_id = tenant.rules(status="DRAFT", tests=suite_of(passing(1500)))
    job_id = submit(stage, tenant, version_id)
    stage.step(job_id)
    tenant.db.execute(f"UPDATE passports.rule_package_versions SET {column} = {column} || ' '".encode())
    assert stage.step(job_id)["status"] == "failed"
    assert stage.dead_letter(job_id)["error_type"] == "SourceChanged"
    assert (runs_of(tenant.db, version_id), events_of(tenant.db, version_id)) == ([], [])


def test_source_that_changes_while_the_last_piece_runs_ends_the_job(
    stage: Stage, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    version_id = tenant.rules(status="DRAFT", tests=suite_of(passing(500)))

    def change() -> None:
        tenant.db.execute("UPDATE passports.rule_package_versions SET rules_source = rules_source || ' '")

    interrupt(monkeypatch, "_run_piece", after=True, by=change)
    job_id = submit(stage, tenant, version_id)
    stage.step(job_id)
    assert stage.dead_letter(job_id)["error_type"] == "SourceChanged"
    assert (runs_of(tenant.db, version_id), status_of(tenant.db, version_id)) == ([], "DRAFT")


@pytest.mark.parametrize(
    ("rules", "tests", "code"),
    [
        ("{}", suite_of(), "RULES_INVALID"),
        ("{}", "{}", "RULES_INVALID"),
        (RULES, "{}", "TEST_SUITE_INVALID"),
        (RULES, suite_of(passing(20_001)), "TEST_SUITE_INVALID"),
    ],
)
def test_invalid_source_is_a_permanent_failure(stage: Stage, tenant: Tenant, rules: str, tests: str, code: str) -> None:
    version_id = tenant.rules(rules, "DRAFT", tests)
    job_id = submit(stage, tenant, version_id)
    stage.step(job_id)
    letter = stage.dead_letter(job_id)
    assert (letter["error_type"], letter["final_error_message"].split(":")[0]) == (class_of(code).__name__, code)
    assert runs_of(tenant.db, version_id) == []


def test_rules_of_another_tenant_are_not_found(stage: Stage, tenant: Tenant) -> None:
    other = Tenant.make(tenant.db)
    foreign_package = other.add("rule_packages", name="rules")
    columns = {"version": 1, "rules_source": RULES, "tests_source": suite_of(passing(500))}
    mixed = tenant.add("rule_package_versions", rule_package_id=foreign_package, **columns)
    for version_id in (other.rules(status="DRAFT", tests=suite_of(passing(500))), mixed, str(uuid4())):
        job_id = submit(stage, tenant, version_id)
        stage.step(job_id)
        assert stage.dead_letter(job_id)["error_type"] == "NotFound"
        assert runs_of(tenant.db, version_id) == []


def test_job_without_a_tenant_takes_that_of_the_rules(stage: Stage, tenant: Tenant) -> None:
    version_id = tenant.rules(status="DRAFT", tests=suite_of(passing(1)))
    stage.finish(stage.submit("run_rule_tests", payload={"rule_package_version_id": version_id}))
    assert [str(run["tenant_id"]) for run in runs_of(tenant.db, version_id)] == [tenant.id]


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, "a", 1.5])
def test_seed_that_no_row_can_hold_is_refused(stage: Stage, tenant: Tenant, seed: Any) -> None:
    with pytest.raises(JobRefused, match="seed"):
        submit(stage, tenant, str(uuid4()), seed=seed)


def interrupt(monkeypatch: pytest.MonkeyPatch, name: str, *, after: bool, by: Callable[[], None]) -> None:
    """Have something happen once, before or after the job calls one of its functions."""
    original, left = getattr(run_rule_tests, name), [by]

    def interrupted(*args: Any) -> Any:
        answer = original(*args) if after or not left else None
        if left:
            left.pop()()
            answer = answer if after else original(*args)
        return answer

    monkeypatch.setattr(run_rule_tests, name, interrupted)


def crash() -> None:
    raise ConnectionError("as the test wants it")


@pytest.mark.parametrize(
    ("name", "after"),
    [("_run_piece", False), ("_run_piece", True), ("_tell", False), ("_tell", True), ("_finish", True)],
)
def test_crash_writes_nothing_twice(
    stage: Stage, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, name: str, after: bool
) -> None:
    version_id = tenant.rules(status="DRAFT", tests=suite_of(passing(1500)))
    job_id = submit(stage, tenant, version_id)
    stage.step(job_id)
    interrupt(monkeypatch, name, after=after, by=crash)
    job = stage.finish(job_id)
    assert len(stage.attempts(job_id)) == 3
    assert (job["result"]["passed_count"], job["result"]["validated"]) == (1500, True)
    assert [len(runs_of(tenant.db, version_id)), len(events_of(tenant.db, version_id))] == [1, 1]
    assert status_of(tenant.db, version_id) == "VALIDATED"


def test_repeat_after_the_end_answers_the_same_though_sources_changed(
    stage: Stage, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    version_id = tenant.rules(status="DRAFT", tests=suite_of(passing(1499), {"name": "fails"}))
    job_id = submit(stage, tenant, version_id)
    stage.step(job_id)

    def change_and_crash() -> None:
        tenant.db.execute("UPDATE passports.rule_package_versions SET tests_source = '{}'")
        crash()

    interrupt(monkeypatch, "_finish", after=True, by=change_and_crash)
    job = stage.finish(job_id)
    assert (job["result"]["status"], job["result"]["failed_count"]) == ("FAILED", 1)
    assert job["result"]["first_failure"]["test_name"] == "fails"


def test_two_jobs_write_a_run_each_and_one_validates(stage: Stage, tenant: Tenant) -> None:
    version_id = tenant.rules(status="DRAFT", tests=suite_of(passing(1500)))
    jobs = [submit(stage, tenant, version_id, seed=seed) for seed in (1, 2)]
    for job_id in (*jobs, *jobs):
        stage.step(job_id)
    assert [stage.job(job_id)["result"]["validated"] for job_id in jobs] == [True, False]
    assert sorted(run["seed"] for run in runs_of(tenant.db, version_id)) == [1, 2]
    assert [payload["run_id"] for _, payload in events_of(tenant.db, version_id)] == jobs


def test_late_worker_answers_what_the_other_has_written(
    stage: Stage, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    version_id = tenant.rules(status="DRAFT", tests=suite_of(passing(500)))
    job_id = submit(stage, tenant, version_id)

    def write() -> None:
        row = {"seed": 0, "total_cases": 500, "passed_count": 500, "failed_count": 0, "status": "PASSED"}
        tenant.add("rule_tests_runs", id=job_id, rule_package_version_id=version_id, **row)

    interrupt(monkeypatch, "_run_piece", after=True, by=write)
    job = stage.step(job_id)
    assert (job["status"], job["result"]["run_id"]) == ("completed", job_id)
    assert events_of(tenant.db, version_id) == []  # they are the other worker's


def test_piece_ends_where_its_time_is_half_spent(stage: Stage, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    version_id = tenant.rules(status="DRAFT", tests=suite_of(passing(600)))
    job_id = submit(stage, tenant, version_id)
    monkeypatch.setattr("signalbox.budget.Budget.allows", lambda *_: False)
    assert [stage.step(job_id)["cursor"]["passed"] for _ in range(3)] == [1, 2, 3]
    monkeypatch.undo()
    assert stage.step(job_id)["result"]["passed_count"] == 600


def test_failure_of_a_test_holds_no_payload(stage: Stage, tenant: Tenant) -> None:
    secret = {"type": "Battery", "key": "a", "payload": {"mass_kg": {"secret": "hidden"}}}
    version_id = tenant.rules(status="DRAFT", tests=suite_of({"facts": [secret]}))
    result = stage.finish(submit(stage, tenant, version_id))["result"]
    assert result["first_failure"]["error"].startswith("RULE_ERROR: TYPE_ERROR in mass_kg: ")
    assert "hidden" not in json.dumps(result)
