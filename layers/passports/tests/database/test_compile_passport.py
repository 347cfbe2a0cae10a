"""A sealed snapshot and published rules become a version of a passport, and else a code says why there is none."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from passports.encoding.canonical import canonical, instant, sha256
from signalbox.testing.stage import Stage
from tests.support.issued_passports import F1, compile_request, meet, refusal_of, result_of, run, version_row
from tests.support.passport_rows import Tenant, events_of

NOBODY = "00000000-0000-4000-8000-0000000000ff"
VALUES = {"null": None, "sku": ["get", ["product"], "sku"], "named": ["fact", "Battery", "battery:CELL-1"]}


def rules_of(check: Any = True, **values: Any) -> str:
    named = [{"name": name, "expr": expr} for name, expr in values.items()]
    return json.dumps({"language": "BPC-RULES-1", "values": named, "checks": [{"name": "checked", "expr": check}]})


def compile_of(stage: Stage, tenant: Tenant, **given: str) -> dict[str, Any]:
    return run(stage, "compile_passport", compile_request(tenant, **given))


def stored(db: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return db.execute("SELECT version, status FROM passports.passport_versions ORDER BY version").fetchall()


def test_result_repeats_ids_and_hashes_of_row(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    request = compile_request(tenant)
    result = result_of(run(stage, "compile_passport", request, tenant.id))
    row = version_row(db, result["passport_version_id"])
    hashes = {name: row[name].hex() for name in ("payload_hash", "proof_root_hash", "receipt_hash")}
    ids = {"passport_version_id": str(row["id"]), "sign_job_id": result["sign_job_id"]}
    assert result == request | ids | hashes | {"version": 1}
    assert (row["status"], str(row["tenant_id"]), row["signature"], row["qr_payload"]) == (
        "COMPILING",
        tenant.id,
        None,
        None,
    )


def test_documents_are_those_of_contract(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    request = compile_request(tenant)
    job = run(stage, "compile_passport", request)
    row = version_row(db, job["result"]["passport_version_id"])
    issued_at = instant(job["created_at"])
    assert row["issued_at"] == job["created_at"]
    assert row["payload_canonical"] == canonical(
        {
            "format": "BPC-PAYLOAD-1",
            "issued_at": issued_at,
            "passport_id": request["passport_id"],
            "product": {"sku": "BP-1"},
            "values": {"mass_kg": 19.75},
        }
    )
    assert row["proof_root_hash"].hex()[:8] == "c469a0ac"
    receipt = json.loads(row["receipt_canonical"])
    assert receipt.pop("rules_hash")[:8] == "f09642e9"
    hashes = {"payload_hash": row["payload_hash"].hex(), "proof_root_hash": row["proof_root_hash"].hex()}
    origin = {"build_id": "0.1.0", "format": "BPC-RECEIPT-1", "issued_at": issued_at, "tenant_id": tenant.id}
    assert receipt == request | hashes | origin
    for name in ("payload", "receipt"):
        assert row[f"{name}_hash"] == sha256(row[f"{name}_canonical"])


def test_compiled_passport_is_signed_next(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    request = compile_request(tenant)
    job = run(stage, "compile_passport", request)
    version_id = job["result"]["passport_version_id"]
    event = {
        "snapshot_id": request["snapshot_id"],
        "rules_id": request["rule_package_version_id"],
        "build_id": "0.1.0",
    }
    assert events_of(db, version_id) == [("PASSPORT_COMPILED", event)]
    child = stage.job(job["result"]["sign_job_id"])
    assert (child["job_type"], child["priority"], child["idempotency_key"]) == (
        "sign_passport",
        1,
        f"sign-{version_id}",
    )
    assert (child["payload"], child["tenant"]) == ({"passport_version_id": version_id}, tenant.id)


def test_each_build_names_itself(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSPORTS_BUILD_ID", "build-9")
    result = result_of(compile_of(stage, tenant))
    row = version_row(db, result["passport_version_id"])
    assert (row["compiler_build_id"], json.loads(row["receipt_canonical"])["build_id"]) == ("build-9", "build-9")


def test_versions_of_a_passport_are_counted(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    request = compile_request(tenant)
    compile_of(stage, tenant)
    assert [result_of(run(stage, "compile_passport", request))["version"] for _ in range(3)] == [1, 2, 3]


def test_two_compiles_of_one_passport_get_two_versions(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    request = compile_request(tenant)
    jobs = [stage.submit("compile_passport", payload=request) for _ in range(2)]
    meet(stage, "passports", request["passport_id"], *jobs)
    assert stage.statuses(*jobs) == ["completed", "completed"]
    assert stored(db) == [(1, "COMPILING"), (2, "COMPILING")]


def test_snapshot_without_facts_is_compiled(stage: Stage, tenant: Tenant) -> None:
    given = {"snapshot_id": tenant.snapshot(), "rule_package_version_id": tenant.rules(rules_of())}
    assert result_of(compile_of(stage, tenant, **given))["proof_root_hash"] == sha256(b"").hex()


def test_null_values_stay_out_of_payload_and_proof(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    given = {"rule_package_version_id": tenant.rules(rules_of(**VALUES))}
    row = version_row(db, result_of(compile_of(stage, tenant, **given))["passport_version_id"])
    assert json.loads(row["payload_canonical"])["values"] == {"named": F1, "sku": "BP-1"}
    leaves = [(leaf["kind"], leaf.get("name")) for leaf in json.loads(row["proof_canonical"])["leaves"]]
    assert leaves == [("fact", None), ("fact", None), ("value", "named"), ("value", "sku")]


def test_own_sku_wins_over_an_attribute(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    attributes = {"sku": "other", "integer": 2**53 - 1, "least": -(2**53) + 1, "text": "ü"}
    result = result_of(compile_of(stage, tenant, passport_id=tenant.passport("BP-2", attributes)))
    payload = json.loads(version_row(db, result["passport_version_id"])["payload_canonical"])
    assert payload["product"] == attributes | {"sku": "BP-2"}


@pytest.mark.parametrize("status", ["BUILDING", "READY"])
def test_only_a_sealed_snapshot_is_compiled(stage: Stage, tenant: Tenant, status: str) -> None:
    snapshot = tenant.snapshot(tenant.fact(F1), status=status)
    assert refusal_of(compile_of(stage, tenant, snapshot_id=snapshot)) == "SNAPSHOT_NOT_READY"


@pytest.mark.parametrize("status", ["DRAFT", "VALIDATED"])
def test_only_published_rules_compile(stage: Stage, tenant: Tenant, status: str) -> None:
    rules = tenant.rules(status=status)
    assert refusal_of(compile_of(stage, tenant, rule_package_version_id=rules)) == "RULE_PKG_NOT_PUBLISHED"


SPACED, HEAVIER = b'{"mass_kg": 12.5,"sku":"CELL-1"}', F1 | {"mass_kg": 12.6}


@pytest.mark.parametrize(
    ("payload", "data", "payload_hash"),
    [
        (HEAVIER, canonical(F1), sha256(canonical(F1))),
        (F1, canonical(HEAVIER), sha256(canonical(F1))),
        (F1, canonical(HEAVIER), sha256(canonical(HEAVIER))),
        (F1, SPACED, sha256(SPACED)),
        (F1, canonical(F1), bytes(32)),
        (F1 | {"mass_kg": 10**400}, canonical(F1), sha256(canonical(F1))),
    ],
)
def test_changed_fact_is_refused(
    stage: Stage, tenant: Tenant, payload: dict[str, Any], data: bytes, payload_hash: bytes
) -> None:
    fact = tenant.fact(payload | {"mass_kg": 0}, key="other")
    changed = tenant.add(
        "facts",
        fact_type="Battery",
        fact_key="battery:CELL-1",
        schema_version=1,
        source_doc_version_id=NOBODY,
        payload=payload,
        payload_canonical=data,
        payload_hash=payload_hash,
    )
    assert refusal_of(compile_of(stage, tenant, snapshot_id=tenant.snapshot(fact, changed))) == "FACT_HASH_MISMATCH"


@pytest.mark.parametrize("mass", [1e21, 5e-324, -0.0, 100.0])
def test_numbers_are_doubles_however_postgres_writes_them(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, mass: float
) -> None:
    given = {"snapshot_id": tenant.snapshot(tenant.fact(F1 | {"mass_kg": mass}))}
    rules = tenant.rules(rules_of(mass=["get", ["fact", "Battery", "battery:CELL-1"], "mass_kg"]))
    result = result_of(compile_of(stage, tenant, rule_package_version_id=rules, **given))
    payload = json.loads(version_row(db, result["passport_version_id"])["payload_canonical"])
    assert payload["values"] == {"mass": mass}


@pytest.mark.parametrize("again", [F1, {"mass_kg": 1, "sku": "CELL-1"}])
def test_fact_that_stands_twice_is_ambiguous(stage: Stage, tenant: Tenant, again: dict[str, Any]) -> None:
    snapshot = tenant.snapshot(tenant.fact(F1), tenant.fact(again))
    assert refusal_of(compile_of(stage, tenant, snapshot_id=snapshot)) == "AMBIGUOUS_FACT"


@pytest.mark.parametrize("attributes", ['{"n": 9007199254740992}', '{"a": [-9007199254740992]}', '{"n": 1e21}', "[]"])
def test_product_that_json_can_not_hold_exactly_is_refused(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, attributes: str
) -> None:
    passport_id = tenant.passport()
    db.execute("UPDATE passports.battery_products SET attributes = %s::jsonb", (attributes,))
    assert refusal_of(compile_of(stage, tenant, passport_id=passport_id)) == "PRODUCT_INVALID"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("{}", "RULES_INVALID"),
        (rules_of(one=["div", 1, 0]), "RULE_ERROR"),
        (rules_of(check=False), "CHECK_FAILED"),
    ],
)
def test_rules_that_fail_refuse_the_passport(stage: Stage, tenant: Tenant, source: str, code: str) -> None:
    job = compile_of(stage, tenant, rule_package_version_id=tenant.rules(source))
    assert refusal_of(job) == code


@pytest.mark.parametrize(("more", "code"), [(0, None), (1, "PAYLOAD_TOO_LARGE")])
def test_payload_has_at_most_131072_bytes(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, more: int, code: str | None
) -> None:
    small = compile_of(stage, tenant, passport_id=tenant.passport(attributes={"text": ""}))["result"]
    [size] = db.execute("SELECT octet_length(payload_canonical) FROM passports.passport_versions").fetchone() or (0,)
    assert small["version"] == 1
    passport_id = tenant.passport(attributes={"text": "x" * (131_072 - size + more)})
    job = compile_of(stage, tenant, passport_id=passport_id)
    assert (refusal_of(job) if code else job["error_details"]) == code


def test_checks_are_made_in_order(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    fine, twice = tenant.fact(F1), tenant.fact(F1)
    changed = tenant.fact(F1, payload_hash=bytes(32))
    bad = tenant.passport(attributes={"n": 2**53})
    draft = tenant.rules("{}", status="DRAFT")
    faults = [
        (bad, tenant.snapshot(fine, twice, changed, status="READY"), draft, "SNAPSHOT_NOT_READY"),
        (bad, tenant.snapshot(fine, twice, changed), draft, "RULE_PKG_NOT_PUBLISHED"),
        (bad, tenant.snapshot(fine, twice, changed), tenant.rules("{}"), "FACT_HASH_MISMATCH"),
        (bad, tenant.snapshot(fine, twice), tenant.rules("{}"), "AMBIGUOUS_FACT"),
        (bad, tenant.snapshot(fine), tenant.rules("{}"), "PRODUCT_INVALID"),
        (tenant.passport(), tenant.snapshot(fine), tenant.rules("{}"), "RULES_INVALID"),
    ]
    for passport_id, snapshot_id, rules_id, code in faults:
        given = {"passport_id": passport_id, "snapshot_id": snapshot_id, "rule_package_version_id": rules_id}
        assert refusal_of(compile_of(stage, tenant, **given)) == code


def missing_row(tenant: Tenant, other: Tenant, case: str) -> dict[str, str]:
    """Return what of a request leads to a row that is missing, or is another tenant's."""
    foreign_item = tenant.snapshot(status="READY")
    other.add("data_snapshot_items", snapshot_id=foreign_item, fact_id=tenant.fact(F1))
    named = {
        "product": {"passport_id": tenant.add("passports", battery_product_id=NOBODY)},
        "foreign product": {
            "passport_id": tenant.add("passports", battery_product_id=other.add("battery_products", sku="x"))
        },
        "fact": {"snapshot_id": tenant.snapshot(tenant.fact(F1), NOBODY, status="READY")},
        "foreign fact": {"snapshot_id": tenant.snapshot(tenant.fact(F1), other.fact(F1), status="READY")},
        "foreign item": {"snapshot_id": foreign_item},
        "foreign passport_id": {"passport_id": other.passport()},
        "foreign snapshot_id": {"snapshot_id": other.snapshot()},
        "foreign rule_package_version_id": {"rule_package_version_id": other.rules()},
    }
    return named.get(case, {case: NOBODY})


ROWS = ["passport_id", "snapshot_id", "rule_package_version_id", "product", "fact"]


@pytest.mark.parametrize("case", [*ROWS, *[f"foreign {row}" for row in ROWS], "foreign item"])
def test_missing_and_foreign_rows_are_not_found(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, case: str
) -> None:
    job = compile_of(stage, tenant, **missing_row(tenant, Tenant.make(db), case))
    assert refusal_of(job) == "NOT_FOUND"


@pytest.mark.parametrize("job_tenant", [NOBODY, "acme"])
def test_job_of_another_tenant_finds_nothing(stage: Stage, tenant: Tenant, job_tenant: str) -> None:
    assert refusal_of(run(stage, "compile_passport", compile_request(tenant), job_tenant)) == "NOT_FOUND"


def test_refused_passport_leaves_nothing(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    refusal_of(compile_of(stage, tenant, rule_package_version_id=tenant.rules(rules_of(check=False))))
    assert stored(db) == []
    for query in ("SELECT FROM passports.events", "SELECT FROM signalbox.jobs WHERE job_type = 'sign_passport'"):
        assert db.execute(query.encode()).fetchall() == []
