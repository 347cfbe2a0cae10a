"""A signed passport gets its QR code once."""

from __future__ import annotations

from base64 import b32decode
from typing import Any

import psycopg
import pytest

from passports.issuing.qr import draw_qr
from signalbox.testing.stage import Stage
from tests.support.issued_passports import compiled, copy_version, meet, refusal_of, result_of, run, version_row
from tests.support.passport_rows import Tenant, events_of

NOBODY = "00000000-0000-4000-8000-0000000000ff"


def draw(stage: Stage, version_id: str, tenant: str | None = None) -> dict[str, Any]:
    return run(stage, "generate_qr", {"passport_version_id": version_id}, tenant)


@pytest.fixture
def signed(stage: Stage, tenant: Tenant, db: psycopg.Connection) -> str:
    """Make a signed version, whose signature nobody looks at here."""
    return copy_version(db, compiled(stage, tenant), status="SIGNED", signature=bytes(64))


def test_qr_code_has_id_and_hashes(stage: Stage, tenant: Tenant, db: psycopg.Connection, signed: str) -> None:
    text = result_of(draw(stage, signed, tenant.id))["qr_payload"]
    row = version_row(db, signed)
    assert (row["status"], row["qr_payload"], row["qr_png"]) == ("SIGNED", text, draw_qr(text))
    kind, version, *parts = text.split("|")
    assert (kind, version, [part[:3] for part in parts]) == ("BPC1", f"pv={signed}", ["ph=", "pr=", "rh="])
    hashes = [b32decode(part[3:] + "====") for part in parts]
    assert hashes == [row[name] for name in ("payload_hash", "proof_root_hash", "receipt_hash")]
    assert events_of(db, signed) == [("QR_GENERATED", {"qr_payload": text})]


def test_repeat_answers_the_same_and_writes_nothing(stage: Stage, db: psycopg.Connection, signed: str) -> None:
    first, row = result_of(draw(stage, signed)), version_row(db, signed)
    assert result_of(draw(stage, signed)) == first == {"passport_version_id": signed, "qr_payload": row["qr_payload"]}
    assert version_row(db, signed) == row
    assert len(events_of(db, signed)) == 1


def test_two_jobs_draw_it_once(stage: Stage, db: psycopg.Connection, signed: str) -> None:
    jobs = [stage.submit("generate_qr", payload={"passport_version_id": signed}) for _ in range(2)]
    meet(stage, "passport_versions", signed, *jobs)
    assert stage.statuses(*jobs) == ["completed", "completed"]
    assert len(events_of(db, signed)) == 1


@pytest.mark.parametrize("status", ["COMPILING", "ACTIVE", "REVOKED"])
def test_only_a_signed_passport_gets_one(stage: Stage, tenant: Tenant, db: psycopg.Connection, status: str) -> None:
    version_id = copy_version(db, compiled(stage, tenant), status=status)
    assert refusal_of(draw(stage, version_id)) == "INVALID_PASSPORT_STATUS"
    assert version_row(db, version_id)["qr_png"] is None


def test_missing_and_foreign_passports_are_not_found(stage: Stage, signed: str) -> None:
    assert refusal_of(draw(stage, NOBODY)) == "NOT_FOUND"
    assert refusal_of(draw(stage, signed, NOBODY)) == "NOT_FOUND"
