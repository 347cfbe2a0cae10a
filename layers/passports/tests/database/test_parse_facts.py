"""Documents become facts, each with the bytes that are hashed, or are rejected with the first fault."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from signalbox.testing.stage import Stage
from tests.support.passport_rows import Tenant, events_of

F1, F2 = {"mass_kg": 12.5, "sku": "CELL-1"}, {"mass_kg": 7.25, "sku": "CELL-2"}


def bom(*components: Any) -> bytes:
    return json.dumps({"components": components}).encode()


def parse(stage: Stage, version_id: str, tenant: str | None = None) -> dict[str, Any]:
    return stage.step(stage.submit("parse_facts", payload={"document_version_id": version_id}, tenant=tenant))


def test_each_element_is_a_fact_with_its_hash(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    version = tenant.document(bom(F1, F2))
    result = parse(stage, version, tenant.id)["result"]
    assert result == {"document_version_id": version, "status": "VALIDATED", "fact_count": 2, "rejection": None}
    found = db.execute(
        "SELECT fact_type, fact_key, schema_version, payload, encode(payload_hash, 'hex') "
        "FROM passports.facts ORDER BY 2"
    ).fetchall()
    assert [row[:4] for row in found] == [
        ("Battery", "battery:CELL-1", 1, F1),
        ("Battery", "battery:CELL-2", 1, F2),
    ]
    assert [row[4][:8] for row in found] == ["c8123bd1", "8e71fb81"]
    assert events_of(db, version) == [("FACTS_PARSED", {"fact_count": 2})]


@pytest.mark.parametrize(
    ("kind", "content", "fact"),
    [
        ("PCF", {"footprints": [{"sku": "A"}]}, ("CarbonFootprint", "pcf:A")),
        ("DUE_DILIGENCE", {"reports": [{"supplier": "B"}]}, ("DueDiligence", "dd:B")),
    ],
)
def test_each_kind_has_facts_of_its_own(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, kind: str, content: Any, fact: tuple[str, str]
) -> None:
    parse(stage, tenant.document(json.dumps(content).encode(), kind))
    assert db.execute("SELECT fact_type, fact_key FROM passports.facts").fetchall() == [fact]


NESTED = b'{"components":' + b"[" * 63 + b"]" * 63 + b"}"


@pytest.mark.parametrize(
    ("content", "code", "path"),
    [
        (b"", "INVALID_JSON", ""),
        (b"{", "INVALID_JSON", ""),
        (b'{"a":1,"a":2}', "INVALID_JSON", ""),
        (b'{"a":NaN}', "INVALID_JSON", ""),
        (b'{"a":9007199254740992}', "INVALID_JSON", ""),
        (b'{"a":1e400}', "INVALID_JSON", ""),
        (b'{"a":"\\u0000"}', "INVALID_JSON", ""),
        (b'{"a":"\\ud800"}', "INVALID_JSON", ""),
        (b'{"a":"\xff"}', "INVALID_JSON", ""),
        (b"[" * 100_000, "INVALID_JSON", ""),
        (NESTED.replace(b"[", b"[[", 1).replace(b"]", b"]]", 1), "INVALID_JSON", ""),
        (NESTED, "INVALID_SCHEMA", "/components/0"),
        (b" " * (4 * 1024 * 1024 + 1), "INVALID_JSON", ""),
        (b"[]", "INVALID_SCHEMA", ""),
        (b"{}", "INVALID_SCHEMA", "/components"),
        (b'{"components":{}}', "INVALID_SCHEMA", "/components"),
        (bom(*[{"sku": str(n)} for n in range(10_001)]), "INVALID_SCHEMA", "/components"),
        (bom({"sku": 1}, 7), "INVALID_SCHEMA", "/components/1"),
        (bom({"sku": "a"}, {}), "INVALID_SCHEMA", "/components/1/sku"),
        (bom({"sku": ""}), "INVALID_SCHEMA", "/components/0/sku"),
        (bom({"sku": "x" * 201}), "INVALID_SCHEMA", "/components/0/sku"),
        (bom({"sku": "a"}, {"sku": "a"}), "DUPLICATE_FACT", "/components/1/sku"),
    ],
)
def test_the_first_fault_rejects_the_document(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, content: bytes, code: str, path: str
) -> None:
    version = tenant.document(content)
    job = parse(stage, version)
    assert (job["status"], job["result"]["status"], job["result"]["fact_count"]) == ("completed", "REJECTED", 0)
    assert (job["result"]["rejection"]["code"], job["result"]["rejection"]["path"]) == (code, path)
    assert events_of(db, version) == [("DOCUMENT_REJECTED", {"code": code})]
    assert db.execute("SELECT count(*) FROM passports.facts").fetchone() == (0,)


@pytest.mark.parametrize(
    ("content", "kind", "count"),
    [
        (b'{"components":[]}', "BOM", 0),
        (bom({"sku": "x" * 200}, {"sku": "\U0001f98a" * 200}), "BOM", 2),
        (b'{"components":[{"sku":"a","n":[1e21,-0.0,9007199254740991]}]}', "BOM", 1),
        (bom(*[{"sku": str(n)} for n in range(10_000)]), "BOM", 10_000),
    ],
)
def test_what_is_just_within_the_limits_is_kept(
    stage: Stage, tenant: Tenant, content: bytes, kind: str, count: int
) -> None:
    result = parse(stage, tenant.document(content, kind))["result"]
    assert (result["status"], result["fact_count"]) == ("VALIDATED", count)


def test_documents_of_another_kind_are_rejected(stage: Stage, tenant: Tenant) -> None:
    rejection = parse(stage, tenant.document(b"{", "OTHER"))["result"]["rejection"]
    assert rejection["code"] == "UNSUPPORTED_DOCUMENT_KIND"


@pytest.mark.parametrize("status", ["VALIDATED", "REJECTED"])
def test_a_document_is_parsed_once(stage: Stage, tenant: Tenant, status: str) -> None:
    version = tenant.document(bom(F1), status=status)
    job = parse(stage, version)
    letter = stage.dead_letter(str(job["id"]))
    assert (letter["failure_reason"], letter["error_type"]) == ("permanent", "InvalidDocumentStatus")
    assert letter["final_error_message"].startswith("INVALID_DOCUMENT_STATUS")


def test_rows_of_another_tenant_are_not_found(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> None:
    version = tenant.document(bom(F1))
    job = parse(stage, version, Tenant.make(db).id)
    assert stage.dead_letter(str(job["id"]))["error_type"] == "NotFound"
    db.execute("UPDATE passports.documents SET tenant_id = gen_random_uuid()")
    assert stage.dead_letter(str(parse(stage, version)["id"]))["error_type"] == "NotFound"
