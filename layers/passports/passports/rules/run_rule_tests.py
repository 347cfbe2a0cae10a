"""Run the tests of a package of rules, a thousand cases a piece.

read the sources → run cases, a piece at a time → one transaction: the run, its event, and the version's status

The run's row has the job's id, so that a repeat finds it and answers the same. All pieces read the same sources.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic import Field

from passports.chain.events import append_event
from passports.encoding.canonical import sha256
from passports.rules.cases import run_case
from passports.rules.language import Rules, read_rules
from passports.rules.suite import RuleTest, read_suite
from signalbox import Completed, JobContext, JobPayload, More
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
CASES_OF_A_PIECE = 1000
LEAST_PASSED = 500


class RunRuleTests(JobPayload):
    """Say which version of which rules to test, and what its random draws begin from."""

    rule_package_version_id: UUID
    seed: int = Field(default=0, ge=-(2**63), lt=2**63)


@dataclass(slots=True)
class Progress:
    """Hold what the pieces so far have come to, and the hashes of the sources that they have read."""

    rules_hash: str
    tests_hash: str
    passed: int = 0
    failed: int = 0
    first_failure: dict[str, Any] | None = None

    @property
    def cases(self) -> int:
        return self.passed + self.failed

    @property
    def status(self) -> str:
        return "PASSED" if not self.failed and self.passed >= LEAST_PASSED else "FAILED"

    def add(self, test_name: str, case: int, error: str | None) -> None:
        """Count a case."""
        if error is None:
            self.passed += 1
            return
        self.failed += 1
        if self.first_failure is None:
            self.first_failure = {"test_name": test_name, "case": case, "error": error}


def run_rule_tests(context: JobContext) -> Completed | More:
    """The result is the run; its tests may fail, and the job has completed."""
    tenant_id, *sources = _find(context)
    if (result := _earlier_result(context, tenant_id)) is not None:
        return Completed(result)
    progress = _progress(context.cursor, *sources)
    rules = read_rules(sources[0])
    suite = read_suite(sources[1], rules)
    total = sum(test.repeat for test in suite)
    _run_piece(context, rules, suite, progress)
    if progress.cases < total:
        return More(asdict(progress), 100 * progress.cases // total, f"{progress.cases} of {total} cases")
    return Completed(_finish(context, tenant_id, progress))


def _find(context: JobContext) -> tuple[str, str, str]:
    payload: RunRuleTests = context.payload
    values = {"tenant_id": context.job.tenant, "rule_package_version_id": payload.rule_package_version_id}
    row: tuple[str, str, str] | None = context.db.execute(SQL["find"], values).fetchone()
    if row is None:
        raise _not_found(context)
    return row


def _not_found(context: JobContext) -> Exception:
    return refuse("NOT_FOUND", f"there are no rules {context.payload.rule_package_version_id} of the job's tenant")


def _progress(cursor: Any, rules_source: str, tests_source: str) -> Progress:
    """Return where the job is, or refuse to go on with other sources than it began with."""
    hashes = [sha256(source.encode()).hex() for source in (rules_source, tests_source)]
    if cursor is None:
        return Progress(rules_hash=hashes[0], tests_hash=hashes[1])
    progress = Progress(**cursor)
    if [progress.rules_hash, progress.tests_hash] != hashes:
        raise refuse("SOURCE_CHANGED", "the rules or their tests have changed since the job began; submit it again")
    return progress


def _run_piece(context: JobContext, rules: Rules, suite: list[RuleTest], progress: Progress) -> None:
    """Run the next thousand cases, or fewer where they would take more than half of the attempt's time."""
    cases = ((test, case) for test in suite for case in range(test.repeat))
    reserve = context.budget.seconds_left / 2
    for test, case in islice(cases, progress.cases, progress.cases + CASES_OF_A_PIECE):
        context.check_cancelled()
        progress.add(test.name, case, run_case(rules, test, context.payload.seed, case))
        if not context.budget.allows(reserve):
            break


def _finish(context: JobContext, tenant_id: str, progress: Progress) -> dict[str, Any]:
    """Write the run, its event and the version's status, unless an earlier attempt has."""
    ids = {"tenant_id": tenant_id, "rule_package_version_id": context.payload.rule_package_version_id}
    with context.db.transaction():
        # Runs of one version follow one another, and its sources stay.
        row = context.db.execute(SQL["lock"], ids).fetchone()
        if row is None:
            raise _not_found(context)
        if (earlier := _earlier_result(context, tenant_id)) is not None:
            return earlier
        *sources, status = row
        _progress(asdict(progress), *sources)
        validated = status == "DRAFT" and progress.status == "PASSED"
        run = (progress.status, progress.cases, progress.passed, progress.failed, progress.first_failure, validated)
        result = _result(context, run)
        context.db.execute(SQL["add_run"], {**result, **ids, **_of_row(context, progress)})
        _tell(context, tenant_id, result)
        if validated:
            context.db.execute(SQL["validate"], ids)
    return result


def _of_row(context: JobContext, progress: Progress) -> dict[str, Any]:
    failure = progress.first_failure
    return {"seed": context.payload.seed, "first_failure": None if failure is None else Jsonb(failure)}


def _tell(context: JobContext, tenant_id: str, result: dict[str, Any]) -> None:
    payload = {name: result[name] for name in ("run_id", "status", "total_cases")}
    payload["passed"] = result["passed_count"]
    version_id = context.payload.rule_package_version_id
    append_event(context.db, tenant_id, "RulePackageVersion", version_id, "TESTS_RUN", payload)


def _earlier_result(context: JobContext, tenant_id: str) -> dict[str, Any] | None:
    """Return the result of the run that an earlier attempt of this job has written."""
    version_id = context.payload.rule_package_version_id
    values = {"tenant_id": tenant_id, "rule_package_version_id": version_id, "run_id": context.job.id}
    row = context.db.execute(SQL["find_run"], values).fetchone()
    return None if row is None else _result(context, row)


def _result(context: JobContext, run: tuple[Any, ...]) -> dict[str, Any]:
    names = ("status", "total_cases", "passed_count", "failed_count", "first_failure", "validated")
    ids = {"rule_package_version_id": str(context.payload.rule_package_version_id), "run_id": context.job.id}
    return ids | dict(zip(names, run, strict=True))
