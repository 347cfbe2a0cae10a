"""Signatures are Ed25519's, and a secret holds a key in one of three forms or none."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from botocore.exceptions import ClientError

from passports.encoding.canonical import sha256
from passports.issuing.signature import is_signed, public_key_of, sign
from passports.issuing.signing_key import SigningKey, key_of, read_signing_key
from signalbox import Permanent, RateLimited

# RFC 8032, section 7.1, test 1.
PRIVATE = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
SIGNATURE = bytes.fromhex(
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
)
RECEIPT_HASH = bytes.fromhex("bc624f04dd7b47f1eab5d5678023ee9e0e5057f3a34337fa2a07502fbc80ab04")


class Secrets:
    """Stand in for Secrets Manager: give the answers one after the other, and count the questions."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), 0

    @property
    def secretsmanager(self) -> Secrets:
        return self

    def get_secret_value(self, **_: Any) -> dict[str, Any]:
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"SecretString": answer}


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def test_signature_is_that_of_the_rfc() -> None:
    assert (public_key_of(PRIVATE), sign(PRIVATE, b"")) == (PUBLIC, SIGNATURE)


def test_receipt_of_the_example_has_this_signature() -> None:
    assert sign(PRIVATE, RECEIPT_HASH).hex()[:8] == "403a2faa"


@pytest.mark.parametrize(
    ("public_key", "signature", "message"),
    [
        (PUBLIC, SIGNATURE, b"!"),
        (PUBLIC, SIGNATURE[:-1], b""),
        (PUBLIC, bytes(64), b""),
        (public_key_of(bytes(32)), SIGNATURE, b""),
        (PUBLIC[:-1], SIGNATURE, b""),
    ],
)
def test_other_signatures_are_refused(public_key: bytes, signature: bytes, message: bytes) -> None:
    assert is_signed(PUBLIC, SIGNATURE, b"")
    assert not is_signed(public_key, signature, message)


DEFAULT_ID = sha256(PUBLIC).hex()[:16]


@pytest.mark.parametrize(
    ("text", "key_id"),
    [
        (encoded(PRIVATE), DEFAULT_ID),
        (encoded(PRIVATE + PUBLIC), DEFAULT_ID),
        (f"{encoded(PRIVATE + PUBLIC)[:76]}\n{encoded(PRIVATE + PUBLIC)[76:]}", DEFAULT_ID),
        (json.dumps({"private_key": encoded(PRIVATE)}), DEFAULT_ID),
        (json.dumps({"private_key": encoded(PRIVATE), "key_id": None}), DEFAULT_ID),
        (json.dumps({"private_key": encoded(PRIVATE + PUBLIC), "key_id": "2026-ü"}), "2026-ü"),
    ],
)
def test_key_is_read_in_each_form(text: str, key_id: str) -> None:
    key = key_of(text)
    assert key == SigningKey(key_id, PUBLIC, PRIVATE)
    assert encoded(PRIVATE) not in repr(key)
    assert PRIVATE.hex() not in repr(key)
    assert repr(PRIVATE) not in repr(key)


@pytest.mark.parametrize(
    "text",
    [
        "no base64!",
        encoded(PRIVATE)[:-1],
        encoded(PRIVATE[:31]),
        encoded(PRIVATE + b"!"),
        encoded(PRIVATE + PUBLIC[:31]),
        encoded(PRIVATE + bytes(32)),
        encoded(PRIVATE + PUBLIC + b"!"),
        PRIVATE.hex(),
        "{",
        "{}",
        '{"private_key": ""}',
        '{"private_key": 1}',
        '{"private_key": null}',
        json.dumps({"private_key": encoded(PRIVATE), "key_id": 7}),
        json.dumps({"private_key": encoded(PRIVATE), "key_id": "a\0"}),
        f'{{"private_key": "{encoded(PRIVATE)}", "private_key": "{encoded(PRIVATE)}"}}',
    ],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    secrets: Any = Secrets(text)
    with pytest.raises(Permanent, match=r"^INVALID_SIGNING_KEY: ") as refused:
        read_signing_key(secrets, "arn:no key")
    assert type(refused.value).__name__ == "InvalidSigningKey"


def failure(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "PAYLOAD"}}, "GetSecretValue")


def test_failures_are_not_kept_and_keys_are() -> None:
    secrets: Any = Secrets(failure("ThrottlingException"), failure("ResourceNotFoundException"), "", encoded(PRIVATE))
    with pytest.raises(RateLimited):
        read_signing_key(secrets, "arn:kept")
    for _ in range(2):
        with pytest.raises(Permanent, match=r"^SIGNING_KEY_MISSING: "):
            read_signing_key(secrets, "arn:kept")
    assert read_signing_key(secrets, "arn:kept").public == PUBLIC
    assert read_signing_key(secrets, "arn:kept").public == PUBLIC
    assert secrets.asked == 4


def test_error_repeats_nothing_of_the_secret() -> None:
    secrets: Any = Secrets(failure("AccessDeniedException"), "SECRET", json.dumps({"private_key": "SECRET"}))
    for kind in ("AWS denies it", "INVALID_SIGNING_KEY: ", "INVALID_SIGNING_KEY: "):
        with pytest.raises(Permanent, match=kind) as refused:
            read_signing_key(secrets, "arn:refused")
        assert "SECRET" not in str(refused.value)
        assert "PAYLOAD" not in str(refused.value)
        assert refused.value.__suppress_context__
