"""Compile passports in a test, and ask for what becomes of them."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from signalbox.testing.stage import Stage
from tests.support.lock_waits import wait_until_blocked
from tests.support.passport_rows import Tenant

# The facts of the contract's example.
F1, F2 = {"mass_kg": 12.5, "sku": "CELL-1"}, {"mass_kg": 7.25, "sku": "CELL-2"}


def compile_request(tenant: Tenant, **given: str) -> dict[str, str]:
    """Return the payload of a compile; what is not given is that of the contract's example."""
    made = {} if "snapshot_id" in given else {"snapshot_id": tenant.snapshot(tenant.fact(F1), tenant.fact(F2))}
    made |= {} if "passport_id" in given else {"passport_id": tenant.passport()}
    made |= {} if "rule_package_version_id" in given else {"rule_package_version_id": tenant.rules()}
    return made | given


def run(stage: Stage, job_type: str, payload: dict[str, Any], tenant: str | None = None) -> dict[str, Any]:
    """Make one attempt at a new job; return its row."""
    return stage.step(stage.submit(job_type, payload=payload, tenant=tenant))


def result_of(job: dict[str, Any]) -> dict[str, Any]:
    assert job["status"] == "completed", job["error_details"]
    result: dict[str, Any] = job["result"]
    return result


def refusal_of(job: dict[str, Any]) -> str:
    """Return the code by which a job was refused for good, at its first attempt."""
    assert (job["status"], job["attempts"]) == ("failed", 1), job["error_details"]
    code = str(job["error_details"]["message"]).partition(":")[0]
    assert job["error_details"]["type"] == "".join(word.capitalize() for word in code.split("_"))
    return code


def compiled(stage: Stage, tenant: Tenant) -> str:
    """Compile the contract's example; return the version's id."""
    return str(result_of(run(stage, "compile_passport", compile_request(tenant)))["passport_version_id"])


def version_row(db: psycopg.Connection[Any], version_id: str) -> dict[str, Any]:
    with db.cursor(row_factory=dict_row) as cursor:
        cursor.execute("SELECT * FROM passports.passport_versions WHERE id = %s", (version_id,))
        [row] = cursor.fetchall()
    return row


def copy_version(db: psycopg.Connection[Any], version_id: str, **changes: Any) -> str:
    """Insert a version like another one, but for some columns; return its id."""
    row = version_row(db, version_id) | {"version": 99} | changes
    del row["id"]
    statement = sql.SQL("INSERT INTO passports.passport_versions ({}) VALUES ({}) RETURNING id::text").format(
        sql.SQL(", ").join(map(sql.Identifier, row)), sql.SQL(", ").join(sql.Placeholder() * len(row))
    )
    [[copied]] = db.execute(statement, list(row.values())).fetchall()
    return str(copied)


def meet(stage: Stage, table: str, row_id: str, *job_ids: str) -> None:
    """Have jobs wait for one row, each in a worker of its own, and then go on; each must wait."""
    lock = sql.SQL("SELECT FROM passports.{} WHERE id = %s FOR UPDATE").format(sql.Identifier(table))
    works = [partial(stage.another().work, job_id) for job_id in job_ids]
    with psycopg.connect(stage.dsn, autocommit=True) as holder, ThreadPoolExecutor() as threads:
        with holder.transaction():
            holder.execute(lock, (row_id,))
            acts = list[Future[Any]]()
            for work in works:
                acts.append(threads.submit(work))
                wait_until_blocked(holder, *acts)
            assert not any(act.done() for act in acts)
        for act in acts:
            act.result()
