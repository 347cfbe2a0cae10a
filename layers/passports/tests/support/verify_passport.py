"""Verify a passport offline from its bytes, with the standard library and `cryptography` alone."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def root_of(leaves: list[bytes]) -> bytes:
    if len(leaves) < 2:
        return sha256(b"\x00" + leaves[0]) if leaves else sha256(b"")
    left = 1 << (len(leaves) - 1).bit_length() - 1  # the largest power of two that leaves something to the right
    return sha256(b"\x01" + root_of(leaves[:left]) + root_of(leaves[left:]))


def verify(payload: bytes, proof: bytes, receipt: bytes, signature: bytes, public_key: bytes) -> Any:
    """Return the payload; raise InvalidSignature or ValueError for a passport that was changed."""
    Ed25519PublicKey.from_public_bytes(public_key).verify(signature, sha256(receipt))
    leaves = [
        json.dumps(leaf, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
        for leaf in json.loads(proof)["leaves"]
    ]
    hashes = {"payload_hash": sha256(payload).hex(), "proof_root_hash": root_of(leaves).hex()}
    if wrong := [name for name, found in hashes.items() if json.loads(receipt)[name] != found]:
        raise ValueError(f"the receipt has another {' and '.join(wrong)}")
    return json.loads(payload)
