"""A signed passport is exported to the jobs' bucket, under its own key or one of its tenant's."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from passports.encoding.canonical import canonical, sha256
from passports.issuing.signature import public_key_of, sign
from signalbox.testing.stage import Stage
from tests.support.at_once import at_once
from tests.support.aws import shared_client
from tests.support.issued_passports import compiled, copy_version, refusal_of, result_of, run, version_row
from tests.support.passport_rows import Tenant, events_of

NOBODY = "00000000-0000-4000-8000-0000000000ff"
KEY = bytes(32)


def export(stage: Stage, version_id: str, format_: str = "JSON_LD", tenant: str | None = None, **more: Any) -> Any:
    return run(stage, "export_passport", {"passport_version_id": version_id, "format": format_, **more}, tenant)


def signature_of(row: dict[str, Any]) -> dict[str, Any]:
    signature = sign(KEY, row["receipt_hash"])
    return {"signature": signature, "signing_key_id": "key-1", "signing_key_public": public_key_of(KEY)}


@pytest.fixture
def signed(stage: Stage, tenant: Tenant, db: psycopg.Connection, bucket: str) -> str:
    """Make a version that is signed."""
    version_id = compiled(stage, tenant)
    return copy_version(db, version_id, status="SIGNED", **signature_of(version_row(db, version_id)))


@pytest.fixture
def s3(moto: str) -> Any:
    return shared_client("s3", moto)


def rows(db: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    query = "SELECT passport_version_id::text, format, key, bytes, sha256 FROM passports.passport_exports ORDER BY key"
    return db.execute(query).fetchall()


@pytest.mark.parametrize(
    ("format_", "suffix", "content_type"),
    [
        ("PDF", "pdf", "application/pdf"),
        ("JSON_LD", "jsonld", "application/ld+json"),
        ("XML", "xml", "application/xml"),
    ],
)
def test_each_format_is_written_with_its_row(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, bucket: str, s3: Any, signed: str,
    format_: str, suffix: str, content_type: str,
) -> None:  # fmt: skip
    job = export(stage, signed, format_, tenant.id)
    key = f"exports/passports/{signed}.{suffix}"
    found = s3.get_object(Bucket=bucket, Key=key)
    data = found["Body"].read()
    facts = {"key": key, "bytes": len(data), "sha256": sha256(data).hex()}
    assert result_of(job) == {"passport_version_id": signed} | facts
    assert found["ContentType"] == content_type
    assert rows(db) == [(signed, format_, key, len(data), sha256(data))]
    assert events_of(db, signed) == [("PASSPORT_EXPORTED", {"format": format_})]
    files = db.execute("SELECT key, bytes, sha256 FROM signalbox.job_files").fetchall()
    assert files == [(key, len(data), sha256(data).hex())]


def test_repeat_has_the_same_bytes_and_one_row(
    stage: Stage, db: psycopg.Connection, bucket: str, s3: Any, signed: str
) -> None:
    first = result_of(export(stage, signed, "PDF"))
    s3.delete_object(Bucket=bucket, Key=first["key"])
    assert result_of(export(stage, signed, "PDF")) == first
    assert sha256(s3.get_object(Bucket=bucket, Key=first["key"])["Body"].read()).hex() == first["sha256"]
    assert (len(rows(db)), len(events_of(db, signed))) == (1, 1)


def test_row_says_what_the_file_has_become(stage: Stage, tenant: Tenant, db: psycopg.Connection, signed: str) -> None:
    key = f"exports/passports/{signed}.xml"
    old = {"format": "XML", "key": key, "bytes": 1, "sha256": bytes(32)}
    tenant.add("passport_exports", passport_version_id=signed, **old)
    result = result_of(export(stage, signed, "XML"))
    assert rows(db) == [(signed, "XML", key, result["bytes"], bytes.fromhex(result["sha256"]))]
    assert events_of(db, signed) == []


def test_two_exports_at_once_make_one_row(stage: Stage, db: psycopg.Connection, signed: str) -> None:
    jobs = [stage.submit("export_passport", payload={"passport_version_id": signed, "format": "XML"}) for _ in "ab"]
    other = stage.another()
    at_once(lambda: stage.work(jobs[0]), lambda: other.work(jobs[1]))
    assert stage.statuses(*jobs) == ["completed", "completed"]
    assert (len(rows(db)), len(events_of(db, signed))) == (1, 1)


def test_active_passport_is_exported(stage: Stage, db: psycopg.Connection, signed: str) -> None:
    db.execute("UPDATE passports.passport_versions SET status = 'ACTIVE' WHERE id = %s", (signed,))
    result = result_of(export(stage, signed))
    assert [row[2] for row in rows(db)] == [result["key"]]


@pytest.mark.parametrize("status", ["COMPILING", "REVOKED"])
def test_other_passports_are_not_exported(stage: Stage, db: psycopg.Connection, signed: str, status: str) -> None:
    version_id = copy_version(db, signed, version=100, status=status)
    assert refusal_of(export(stage, version_id)) == "INVALID_PASSPORT_STATUS"


def changed(row: dict[str, Any], case: str) -> dict[str, Any]:
    """Return what of a row makes its signature one of something else."""
    other = canonical(json.loads(row["payload_canonical"]) | {"values": {}})
    receipt = canonical(json.loads(row["receipt_canonical"]) | {"build_id": "other"})
    columns: dict[str, dict[str, Any]] = {
        "signature": {"signature": bytes(64)},
        "no signature": {"signature": None},
        "key": {"signing_key_public": public_key_of(bytes(31) + b"!")},
        "no key": {"signing_key_public": None},
        "payload": {"payload_canonical": other},
        "payload and its hash": {"payload_canonical": other, "payload_hash": sha256(other)},
        "receipt": {"receipt_canonical": receipt},
        "receipt and its hash": {"receipt_canonical": receipt, "receipt_hash": sha256(receipt)},
        "no receipt": signature_of({"receipt_hash": sha256(b"[]")})
        | {"receipt_canonical": b"[]", "receipt_hash": sha256(b"[]")},
    }
    return columns[case]


@pytest.mark.parametrize(
    "case",
    [
        "signature", "no signature", "key", "no key", "payload", "payload and its hash", "receipt",
        "receipt and its hash", "no receipt",
    ],
)  # fmt: skip
def test_signature_of_something_else_is_refused(
    stage: Stage, db: psycopg.Connection, bucket: str, s3: Any, signed: str, case: str
) -> None:
    version_id = copy_version(db, signed, **{"version": 100} | changed(version_row(db, signed), case))
    assert refusal_of(export(stage, version_id)) == "SIGNATURE_INVALID"
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_destination_is_a_key_of_the_tenant(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, bucket: str, s3: Any, signed: str
) -> None:
    longest = f"exports/{tenant.id}/x" + "é" * ((1024 - 46) // 2)
    keys = [f"exports/{tenant.id}/a/Ü b.json", longest]
    assert len(longest.encode()) == 1024
    found = [result_of(export(stage, signed, destination=key)) for key in keys]
    assert [one["key"] for one in found] == keys
    assert found[0]["sha256"] == found[1]["sha256"]
    assert sorted(one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"]) == sorted(keys)
    assert (len(rows(db)), len(events_of(db, signed))) == (2, 2)


@pytest.mark.parametrize(
    "destination",
    [
        "",
        "exports/{tenant}",
        "exports/{tenant}/",
        "exports/{tenant}/../x",
        "exports/{tenant}/a..b",
        "/exports/{tenant}/x",
        "exports/{tenant}x/x",
        "exports/passports/x.pdf",
        "exports/00000000-0000-4000-8000-0000000000ff/x",
        "s3://bucket/exports/{tenant}/x",
        "exports/{tenant}/a\nb",
        "exports/{tenant}/{long}",
    ],
)
def test_other_destinations_are_refused(stage: Stage, tenant: Tenant, signed: str, destination: str) -> None:
    key = destination.format(tenant=tenant.id, long="x" * (1025 - 45))
    assert refusal_of(export(stage, signed, destination=key)) == "FILE_REFUSED"


def test_missing_and_foreign_passports_are_not_found(stage: Stage, signed: str) -> None:
    assert refusal_of(export(stage, NOBODY)) == "NOT_FOUND"
    assert refusal_of(export(stage, signed, tenant=NOBODY)) == "NOT_FOUND"
