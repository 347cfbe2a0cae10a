"""Write the three documents of a passport: the payload, the proof of what it was made of, and the receipt.

Each is a function of its arguments alone, so the same facts and rules give the same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from passports.encoding.canonical import canonical, instant, sha256
from passports.issuing.merkle import root_of


class Hashes(NamedTuple):
    """Hold the three hashes that a receipt names."""

    payload: bytes
    proof_root: bytes
    rules: bytes


@dataclass(frozen=True, slots=True)
class Issue:
    """Say what is issued, when, and by which build of the compiler."""

    tenant_id: UUID
    passport_id: UUID
    snapshot_id: UUID
    rule_package_version_id: UUID
    issued_at: datetime
    build_id: str


class Documents(NamedTuple):
    """Hold the documents of a passport, and their hashes."""

    payload: bytes
    payload_hash: bytes
    proof: bytes
    proof_root_hash: bytes
    receipt: bytes
    receipt_hash: bytes


def payload_of(issue: Issue, product: Mapping[str, Any], values: Mapping[str, Any]) -> bytes:
    """Return what the passport says of its product."""
    return canonical(
        {
            "format": "BPC-PAYLOAD-1",
            "issued_at": instant(issue.issued_at),
            "passport_id": str(issue.passport_id),
            "product": dict(product),
            "values": dict(values),
        }
    )


def fact_leaf(fact_type: str, key: str, version: int, payload_hash: bytes) -> dict[str, Any]:
    return {"key": key, "kind": "fact", "sha256": payload_hash.hex(), "type": fact_type, "version": version}


def value_leaf(name: str, value: Any) -> dict[str, Any]:
    return {"kind": "value", "name": name, "sha256": sha256(canonical(value)).hex()}


def proof_of(leaves: Iterable[dict[str, Any]]) -> tuple[bytes, bytes]:
    """Return the proof over the leaves in their order, and its root."""
    listed = list(leaves)
    root = root_of([canonical(leaf) for leaf in listed])
    return canonical({"format": "BPC-PROOF-1", "leaves": listed, "root": root.hex()}), root


def receipt_of(issue: Issue, hashes: Hashes) -> bytes:
    """Return what is signed: which facts and rules made which payload."""
    return canonical(
        {
            "build_id": issue.build_id,
            "format": "BPC-RECEIPT-1",
            "issued_at": instant(issue.issued_at),
            "passport_id": str(issue.passport_id),
            "payload_hash": hashes.payload.hex(),
            "proof_root_hash": hashes.proof_root.hex(),
            "rule_package_version_id": str(issue.rule_package_version_id),
            "rules_hash": hashes.rules.hex(),
            "snapshot_id": str(issue.snapshot_id),
            "tenant_id": str(issue.tenant_id),
        }
    )
