"""A passport is signed once, and only if its receipt says what its row says."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from passports.encoding.canonical import canonical, sha256
from passports.issuing import signing_key as kept_keys
from signalbox.testing.stage import Stage
from tests.support.aws import shared_client
from tests.support.issued_passports import compiled, copy_version, meet, refusal_of, result_of, run, version_row
from tests.support.passport_rows import Tenant, events_of
from tests.support.verify_passport import verify

PRIVATE_KEY = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")  # RFC 8032, test 1
OTHER_KEY = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")  # test 2
NOBODY = "00000000-0000-4000-8000-0000000000ff"
BYTES = ("payload_canonical", "proof_canonical", "receipt_canonical", "signature", "signing_key_public")


def sign(stage: Stage, version_id: str, tenant: str | None = None) -> dict[str, Any]:
    return run(stage, "sign_passport", {"passport_version_id": version_id}, tenant)


def secret(moto: str, monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> str:
    """Have passports signed with a secret of this content; return its ARN."""
    content = {"SecretString": text} if isinstance(text, str) else {"SecretBinary": text}
    arn: str = shared_client("secretsmanager", moto).create_secret(Name=f"key-{uuid4().hex}", **content)["ARN"]
    monkeypatch.setenv("PASSPORTS_SIGNING_SECRET_ARN", arn)
    return arn


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def test_signed_passport_verifies_offline(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, signing_key: str
) -> None:
    version_id = compiled(stage, tenant)
    result = result_of(sign(stage, version_id, tenant.id))
    row = version_row(db, version_id)
    found = {"key_id": "key-1", "signature": row["signature"].hex(), "qr_job_id": result["qr_job_id"]}
    assert result == {"passport_version_id": version_id} | found
    assert (row["status"], row["signing_key_id"]) == ("SIGNED", "key-1")
    assert events_of(db, version_id)[1:] == [("PASSPORT_SIGNED", {"key_id": "key-1"})]
    assert verify(*(row[name] for name in BYTES))["values"] == {"mass_kg": 19.75}


@pytest.mark.parametrize("name", BYTES)
def test_tampered_passport_does_not_verify(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, signing_key: str, name: str
) -> None:
    version_id = compiled(stage, tenant)
    result_of(sign(stage, version_id))
    row = version_row(db, version_id)
    changed = {"payload_canonical": row["payload_canonical"].replace(b"19.75", b"19.74")}
    changed["proof_canonical"] = row["proof_canonical"].replace(b"CELL-1", b"CELL-3")
    changed["receipt_canonical"] = row["receipt_canonical"].replace(b"0.1.0", b"0.1.1")
    changed |= {"signature": bytes(64), "signing_key_public": bytes(31) + b"\x01"}
    with pytest.raises((InvalidSignature, ValueError)):
        verify(*((row | {name: changed[name]})[each] for each in BYTES))


def test_qr_code_is_drawn_next(stage: Stage, tenant: Tenant, db: psycopg.Connection, signing_key: str) -> None:
    version_id = compiled(stage, tenant)
    child = stage.job(result_of(sign(stage, version_id))["qr_job_id"])
    columns = ("job_type", "priority", "idempotency_key", "tenant", "payload")
    expected = "generate_qr", 2, f"qr-{version_id}", tenant.id, {"passport_version_id": version_id}
    assert tuple(child[name] for name in columns) == expected


def test_two_jobs_sign_a_passport_once(stage: Stage, tenant: Tenant, db: psycopg.Connection, signing_key: str) -> None:
    version_id = compiled(stage, tenant)
    jobs = [stage.submit("sign_passport", payload={"passport_version_id": version_id}) for _ in range(2)]
    meet(stage, "passport_versions", version_id, *jobs)
    assert sorted(stage.statuses(*jobs)) == ["completed", "failed"]
    assert [name for name, _ in events_of(db, version_id)] == ["PASSPORT_COMPILED", "PASSPORT_SIGNED"]


@pytest.mark.parametrize("status", ["SIGNED", "ACTIVE", "REVOKED"])
def test_only_new_passports_are_signed(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, signing_key: str, status: str
) -> None:
    version_id = copy_version(db, compiled(stage, tenant), status=status)
    assert refusal_of(sign(stage, version_id)) == "INVALID_PASSPORT_STATUS"


@pytest.mark.parametrize("case", ["missing", "foreign"])
def test_missing_and_foreign_passports_are_not_found(stage: Stage, tenant: Tenant, signing_key: str, case: str) -> None:
    version_id = NOBODY if case == "missing" else compiled(stage, tenant)
    assert refusal_of(sign(stage, version_id, NOBODY if case == "foreign" else None)) == "NOT_FOUND"


def edited(document: bytes, **changes: Any) -> bytes:
    return canonical(json.loads(document) | changes)


def mismatch(row: dict[str, Any], case: str) -> dict[str, Any]:
    """Return the columns of a row that no longer fits together."""
    receipt, proof = row["receipt_canonical"], row["proof_canonical"]
    leaves = json.loads(proof)["leaves"]
    other = {
        "payload": {"payload_canonical": edited(row["payload_canonical"], values={})},
        "payload and hash": {"payload_canonical": b"{}", "payload_hash": sha256(b"{}")},
        "payload's hash": {"payload_hash": bytes(32)},
        "leaf": {"proof_canonical": edited(proof, leaves=[leaves[0] | {"version": 2}, *leaves[1:]])},
        "order of leaves": {"proof_canonical": edited(proof, leaves=leaves[::-1])},
        "root in the proof": {"proof_canonical": edited(proof, root="00" * 32)},
        "no proof": {"proof_canonical": b"[1]"},
        "no JSON": {"proof_canonical": b"\xff"},
        "root": {"proof_root_hash": bytes(32)},
        "receipt": {"receipt_canonical": receipt + b" "},
        "receipt's hash": {"receipt_hash": bytes(32)},
        "build": {"compiler_build_id": "other"},
        "instant": {"issued_at": row["issued_at"] + timedelta(microseconds=1)},
    }
    columns = {name: {name: NOBODY} for name in ("passport_id", "snapshot_id", "rule_package_version_id", "tenant_id")}
    said = {
        "member": edited(receipt, more=1),
        "short rules_hash": edited(receipt, rules_hash="00"),
        "written otherwise": b" " + receipt,
    }
    documents = {name: {"receipt_canonical": one, "receipt_hash": sha256(one)} for name, one in said.items()}
    changes: dict[str, Any] = (other | columns | documents)[case]
    return changes


@pytest.mark.parametrize(
    "case",
    [
        "payload", "payload and hash", "payload's hash", "leaf", "order of leaves", "root in the proof", "no proof",
        "no JSON", "root", "receipt", "receipt's hash", "build", "instant", "passport_id", "snapshot_id",
        "rule_package_version_id", "tenant_id", "member", "short rules_hash", "written otherwise",
    ],
)  # fmt: skip
def test_receipt_that_differs_from_row_is_not_signed(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, signing_key: str, case: str
) -> None:
    version_id = compiled(stage, tenant)
    changed = copy_version(db, version_id, **mismatch(version_row(db, version_id), case))
    assert refusal_of(sign(stage, changed)) == "RECEIPT_MISMATCH"
    assert version_row(db, changed)["signature"] is None


FORMS = [encoded(PRIVATE_KEY), json.dumps({"private_key": encoded(PRIVATE_KEY)})]


@pytest.mark.parametrize("text", FORMS)
def test_key_without_id_has_that_of_its_public_key(
    stage: Stage, tenant: Tenant, bucket: str, moto: str, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    secret(moto, monkeypatch, text)
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    assert result_of(sign(stage, compiled(stage, tenant)))["key_id"] == sha256(public).hex()[:16]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("\n", "SIGNING_KEY_MISSING"),
        ("not base64", "INVALID_SIGNING_KEY"),
        (b"bytes", "INVALID_SIGNING_KEY"),
        (encoded(PRIVATE_KEY + OTHER_KEY), "INVALID_SIGNING_KEY"),
    ],
)
def test_secret_without_key_is_refused(
    stage: Stage, tenant: Tenant, bucket: str, moto: str, monkeypatch: pytest.MonkeyPatch, text: str | bytes, code: str
) -> None:
    secret(moto, monkeypatch, text)
    job = sign(stage, compiled(stage, tenant))
    assert refusal_of(job) == code
    assert str(text) not in job["error_details"]["message"]


@pytest.mark.parametrize("arn", ["", "arn:aws:secretsmanager:us-east-1:123456789012:secret:none-abcdef"])
def test_missing_secret_is_named(
    stage: Stage, tenant: Tenant, bucket: str, monkeypatch: pytest.MonkeyPatch, arn: str
) -> None:
    monkeypatch.setenv("PASSPORTS_SIGNING_SECRET_ARN", arn)
    job = sign(stage, compiled(stage, tenant))
    assert refusal_of(job) == "SIGNING_KEY_MISSING"
    assert (arn or "PassportsSigningSecretArn") in job["error_details"]["message"]


def test_key_is_kept_for_five_minutes_and_failures_never(
    stage: Stage, tenant: Tenant, bucket: str, moto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = secret(moto, monkeypatch, "no key")
    client = shared_client("secretsmanager", moto)

    def signed_by() -> Any:
        public = version_row(tenant.db, result_of(sign(stage, compiled(stage, tenant)))["passport_version_id"])
        return public["signing_key_public"]

    refusal_of(sign(stage, compiled(stage, tenant)))
    client.put_secret_value(SecretId=arn, SecretString=encoded(PRIVATE_KEY))
    first = signed_by()
    client.put_secret_value(SecretId=arn, SecretString=encoded(OTHER_KEY))
    assert signed_by() == first
    until, key = kept_keys._kept[arn]
    kept_keys._kept[arn] = until - kept_keys.KEPT_SECONDS, key
    assert signed_by() != first


def test_old_signatures_verify_after_a_rotation(
    stage: Stage, tenant: Tenant, db: psycopg.Connection, moto: str, signing_key: str
) -> None:
    version_id = compiled(stage, tenant)
    result_of(sign(stage, version_id))
    shared_client("secretsmanager", moto).put_secret_value(SecretId=signing_key, SecretString=encoded(OTHER_KEY))
    kept_keys._kept.clear()
    result_of(sign(stage, compiled(stage, tenant)))
    row = version_row(db, version_id)
    Ed25519PublicKey.from_public_bytes(row["signing_key_public"]).verify(row["signature"], row["receipt_hash"])
