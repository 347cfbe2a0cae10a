"""Webhook signatures equal those that the Standard Webhooks specification and its libraries record."""

from __future__ import annotations

from signalbox.job_types.webhooks.signature import sign
from signalbox.job_types.webhooks.signing_key import key_of

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, TIME, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_recorded_delivery_has_the_recorded_signature() -> None:
    assert sign([key_of(SECRET)], ID, BODY, TIME) == {
        "webhook-id": ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": SIGNATURE,
    }


def test_each_key_gives_a_signature_of_its_own() -> None:
    signed = sign([b"another", key_of(SECRET)], ID, BODY, TIME)["webhook-signature"]
    first, second = signed.split(" ")
    assert (first.startswith("v1,"), first == second, second) == (True, False, SIGNATURE)


def test_a_text_that_is_not_marked_as_base64_is_the_key_itself() -> None:
    assert key_of("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") == b"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    assert key_of("clé") == "clé".encode()
