"""The HTTP API takes tokens of one issuer beside its own, and refuses whatever the issuer did not sign for it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import Any

import jwt
import psycopg
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm

from signalbox.api.issuer import issuer_keys
from signalbox.testing.stage import NOON, Stage
from tests.support.http_api import Answer, HttpClient, client_of, request_event
from tests.support.issuer import AUDIENCE, Fault, Issuer, public_jwk, respond, rsa_key


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer_keys.cache_clear()  # as a new execution environment
    with Issuer() as running:
        yield running


@pytest.fixture
def trusting(stage: Stage, issuer: Issuer) -> Stage:
    return stage.another(jwt_issuer=f"{issuer.url} {AUDIENCE}")


@pytest.fixture
def bound(stage: Stage, issuer: Issuer) -> Stage:
    """Trust the issuer for roles in another claim, and for tenants."""
    return stage.another(jwt_issuer=f"{issuer.url} {AUDIENCE} groups org")


def ask(stage: Stage, token: str, at: datetime = NOON) -> Answer:
    return HttpClient(stage, token)("GET", "/v1/jobs", at=at)


def ec_key(issuer: Issuer) -> ec.EllipticCurvePrivateKey:
    key = issuer.keys["curve"]
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def part(value: object) -> str:
    return (
        base64.urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode()).decode().rstrip("=")
    )


# ---- who asks


@pytest.mark.parametrize("key_id", ["one", "curve"])
def test_operator_of_the_issuer_submits_in_their_own_name(
    trusting: Stage, issuer: Issuer, db: psycopg.Connection, key_id: str
) -> None:
    http = HttpClient(trusting, issuer.token(key_id, email="ann@example.com"))
    made = http("POST", "/v1/jobs", {"job_type": "do_nothing"})
    http("POST", f"/v1/jobs/{made.body['id']}/cancel", {"reason": "not needed"})
    name = f"ann@example.com ({issuer.url.split('/')[2]})"
    assert http("GET", f"/v1/jobs/{made.body['id']}").body["job"]["created_by"] == name
    assert db.execute("SELECT DISTINCT actor FROM signalbox.audit_log").fetchall() == [(name,)]


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({}, "u-7"),
        ({"preferred_username": "ann"}, "ann"),
        ({"email": "ann@example.com", "email_verified": False}, "u-7"),
        ({"email": "ann@example.com\nroot"}, "u-7"),
        ({"email": "a" * 201}, "u-7"),
        ({"email": ["ann@example.com"]}, "u-7"),
    ],
)
def test_caller_is_named_by_what_the_issuer_vouches_for(
    trusting: Stage, issuer: Issuer, claims: dict[str, Any], name: str
) -> None:
    answer = HttpClient(trusting, issuer.token(roles=["viewer"], **claims))("POST", "/v1/jobs", {})
    assert (answer.status, answer.body["detail"].startswith(f"'{name} (127.0.0.1:")) == (403, True)


def test_token_that_names_nobody_is_refused(trusting: Stage, issuer: Issuer) -> None:
    assert ask(trusting, issuer.token(sub=None)).status == 401


@pytest.mark.parametrize(
    ("roles", "reads", "changes"),
    [
        ("viewer", 200, 403),
        (["staff", "viewer"], 200, 403),
        ("operator", 200, 201),
        (["viewer", "operator"], 200, 201),
        (None, 403, 403),
        ([], 403, 403),
        ("Operator", 403, 403),
        ("viewer operator", 403, 403),
        ({"operator": True}, 403, 403),
        ([["operator"], {}, 1, None], 403, 403),
    ],
)
def test_role_is_the_claims_value_or_one_of_them(
    trusting: Stage, issuer: Issuer, roles: object, reads: int, changes: int
) -> None:
    http = HttpClient(trusting, issuer.token(roles=roles))
    assert http("GET", "/v1/jobs").status == reads
    assert http("POST", "/v1/jobs", {"job_type": "do_nothing"}).status == changes


def test_caller_without_a_role_is_told_which_claim_gives_one(trusting: Stage, issuer: Issuer) -> None:
    detail = ask(trusting, issuer.token(roles=None)).body["detail"]
    assert "let the issuer put viewer or operator into the claim 'roles'" in detail


def test_tenants_claim_binds_to_that_tenants_jobs(bound: Stage, issuer: Issuer) -> None:
    bound.submit("do_nothing", tenant="acme")
    bound.submit("do_nothing", tenant="other")
    http = HttpClient(bound, issuer.token(groups="operator", org="acme"))
    assert [job["tenant"] for job in http("GET", "/v1/jobs").body["jobs"]] == ["acme"]
    assert http("GET", "/v1/health").status == 403


@pytest.mark.parametrize("org", [None, "", 7, ["acme"], "a\0b", "a" * 201])
def test_token_without_a_tenant_meets_no_jobs_where_tenants_are_bound(
    bound: Stage, issuer: Issuer, org: object
) -> None:
    answer = ask(bound, issuer.token(groups="operator", org=org))
    assert (answer.status, "in the claim 'org'" in answer.body["detail"]) == (403, True)


# ---- what is refused


def seconds(count: int) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=count)


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"aud": "api://other"}, "another audience"),
        ({"aud": ["api://other"]}, "another audience"),
        ({"aud": None}, "lacks one of the claims"),
        ({"iss": "https://login.example.com"}, "another issuer"),
        ({"iss": None}, "lacks one of the claims"),
        ({"exp": -31}, "has expired"),
        ({"exp": None}, "lacks one of the claims"),
        ({"exp": "soon"}, "can't be read"),
        ({"exp": float("inf")}, "can't be read"),
        ({"nbf": 40}, "not valid yet"),
        ({"nbf": {}}, "can't be read"),
        ({"iat": 40}, "not valid yet"),
        ({"sub": 7}, "can't be read"),
    ],
)
def test_token_for_others_or_for_another_time_is_refused(
    trusting: Stage, issuer: Issuer, claims: dict[str, Any], words: str
) -> None:
    claims = {
        name: seconds(value) if name in ("exp", "nbf", "iat") and type(value) is int else value
        for name, value in claims.items()
    }
    answer = ask(trusting, issuer.token(**claims))
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer realm="signalbox"')
    assert words in answer.body["detail"]


@pytest.mark.parametrize("claims", [{"exp": -20}, {"nbf": 20}, {"iat": 20}, {"aud": ["x", AUDIENCE]}])
def test_clocks_may_differ_by_half_a_minute(trusting: Stage, issuer: Issuer, claims: dict[str, Any]) -> None:
    given: dict[str, Any] = {name: seconds(value) if type(value) is int else value for name, value in claims.items()}
    assert ask(trusting, issuer.token(**given)).status == 200


def test_token_without_a_signature_is_refused(trusting: Stage, issuer: Issuer) -> None:
    for name in ("none", "None", "NONE", ""):
        claims = json.loads(json.dumps(issuer.claims(), default=lambda time: int(time.timestamp())))
        for signature in ("", issuer.token().rpartition(".")[2]):
            token = f"{part({'alg': name, 'kid': 'one'})}.{part(claims)}.{signature}"
            assert ask(trusting, token).status == 401, name


def test_public_key_is_no_secret_to_sign_with(trusting: Stage, issuer: Issuer) -> None:
    public = issuer.keys["one"].public_key()
    claims = json.loads(json.dumps(issuer.claims(), default=lambda time: int(time.timestamp())))
    for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER):
        secret = public.public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
        for name in ("HS256", "RS256"):
            signed = f"{part({'alg': name, 'kid': 'one', 'typ': 'JWT'})}.{part(claims)}"
            token = f"{signed}.{part(hmac.digest(secret, signed.encode(), hashlib.sha256))}"
            assert ask(trusting, token).status == 401, (encoding, name)


@pytest.mark.parametrize("algorithm", ["RS512", "PS256"])
def test_only_the_listed_algorithms_are_taken(trusting: Stage, issuer: Issuer, algorithm: str) -> None:
    token = jwt.encode(issuer.claims(), rsa_key("one"), algorithm, {"kid": "one"})
    assert ask(trusting, token).status == 401


def test_key_decides_on_the_algorithm(trusting: Stage, issuer: Issuer) -> None:
    assert ask(trusting, issuer.token("one", issuer.keys["curve"])).status == 401
    assert ask(trusting, issuer.token("curve", issuer.keys["one"])).status == 401
    signed = f"{part({'alg': 'RS256', 'kid': 'curve'})}.{issuer.token().split('.')[1]}"
    signature = ECAlgorithm(ECAlgorithm.SHA256).sign(signed.encode(), ec_key(issuer))
    assert ask(trusting, f"{signed}.{part(signature)}").status == 401, "its header does not agree"


def test_tampered_token_is_refused(trusting: Stage, issuer: Issuer) -> None:
    head, body, signature = issuer.token(roles="viewer").split(".")
    other = issuer.token().split(".")
    for token in (f"{head}.{other[1]}.{signature}", f"{head}.{body}.{other[2]}", f"{head}.{body}.{signature[:-4]}"):
        assert ask(trusting, token).status == 401
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    raised = part(claims | {"roles": "operator"})
    assert ask(trusting, f"{head}.{raised}.{signature}").status == 401


@pytest.mark.parametrize("key_id", ["two", "", "../../etc/passwd", "one/../one", "http://127.0.0.1/keys", "' OR 1=1"])
def test_unknown_key_is_refused_whatever_its_name(trusting: Stage, issuer: Issuer, key_id: str) -> None:
    answer = ask(trusting, issuer.token(key_id, rsa_key("of somebody")))
    assert (answer.status, "does not list" in answer.body["detail"]) == (401, True)
    assert set(issuer.asked) == {"/realm/.well-known/openid-configuration", "/realm/keys"}


@pytest.mark.parametrize("key_id", [None, 7, ["one"], {"one": 1}])
def test_key_without_a_name_is_refused(trusting: Stage, issuer: Issuer, key_id: object) -> None:
    token = f"{part({'alg': 'RS256', 'kid': key_id})}.{issuer.token().partition('.')[2]}"
    assert ask(trusting, token).status == 401
    assert ask(trusting, f"{part({'alg': 'RS256'})}.{issuer.token().partition('.')[2]}").status == 401


@pytest.mark.parametrize("name", ["jku", "x5u", "jwk"])
def test_address_or_key_in_a_header_is_ignored(trusting: Stage, issuer: Issuer, name: str) -> None:
    own = rsa_key("of somebody")
    with Issuer() as other:
        other.keys["one"] = own
        value = public_jwk(own, "one") if name == "jwk" else f"{other.url}/keys"
        assert ask(trusting, issuer.token("one", own, {name: value})).status == 401
        assert ask(trusting, issuer.token("one", header={name: value})).status == 200
        assert other.asked == []


def test_critical_extension_that_is_not_known_is_refused(trusting: Stage, issuer: Issuer) -> None:
    assert ask(trusting, issuer.token(header={"crit": ["mine"], "mine": 1})).status == 401


NESTED = b"[" * 5000
GARBAGE = ["", "e30", "####", "é", "\ud800", part(b"\xff"), part(NESTED), part([]), part("text"), part({}), "a" * 5001]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_in_each_part_is_refused(trusting: Stage, issuer: Issuer, place: int, garbage: str) -> None:
    parts = issuer.token().split(".")
    parts[place] = garbage
    assert ask(trusting, ".".join(parts)).status == 401


@pytest.mark.parametrize(
    "token", ["a", ".", "..", "...", "a.b", "a.b.c.d", "a.b.c.d.e", "eyJ", "sbx_eyJ.a.b", "\0", "é.é.é"]
)
def test_what_is_no_token_is_refused(trusting: Stage, token: str) -> None:
    assert ask(trusting, token).status == 401


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jku", "zip"]),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.sampled_from(["RS256", "ES256", "one"]),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=5,
        ),
    ),
    claims=st.binary(max_size=20),
    signature=st.binary(max_size=300),
)
def test_no_token_that_the_issuer_did_not_sign_is_taken(
    trusting: Stage, issuer: Issuer, header: dict[str, Any], claims: bytes, signature: bytes
) -> None:
    assert ask(trusting, f"{part(header)}.{part(claims)}.{part(signature)}").status == 401


# ---- the issuer's keys


def test_new_key_is_taken_without_a_restart(trusting: Stage, issuer: Issuer) -> None:
    assert ask(trusting, issuer.token()).status == 200
    issuer.keys = {"two": rsa_key("two")}
    assert ask(trusting, issuer.token("two"), NOON + timedelta(seconds=61)).status == 200
    old = issuer.token("one", rsa_key("one"))
    assert ask(trusting, old, NOON + timedelta(seconds=62)).status == 401, "its key was withdrawn"


def test_withdrawn_key_is_good_for_an_hour_at_most(trusting: Stage, issuer: Issuer) -> None:
    token = issuer.token()
    assert ask(trusting, token).status == 200
    issuer.keys = {"two": rsa_key("two")}
    assert ask(trusting, token, NOON + timedelta(minutes=59)).status == 200
    assert ask(trusting, token, NOON + timedelta(minutes=60)).status == 401


def test_unknown_keys_ask_the_issuer_once_a_minute_at_most(trusting: Stage, issuer: Issuer) -> None:
    for second in range(0, 60, 2):
        ask(trusting, issuer.token(f"key {second}", rsa_key("of somebody")), NOON + timedelta(seconds=second))
        assert ask(trusting, issuer.token(), NOON + timedelta(seconds=second)).status == 200
    assert len(issuer.asked) == 2, "its configuration and its keys"
    ask(trusting, issuer.token("last", rsa_key("of somebody")), NOON + timedelta(seconds=60))
    assert len(issuer.asked) == 4


def test_tokens_that_cannot_be_good_ask_the_issuer_nothing(trusting: Stage, issuer: Issuer) -> None:
    for token in ("a.b.c", jwt.encode({}, "s" * 32, "HS256", {"kid": "one"})):
        ask(trusting, token)
    assert issuer.asked == []


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
@pytest.mark.parametrize(
    "listed",
    [
        public_jwk(rsa_key("small", 1024), "one"),
        public_jwk(rsa_key("one"), "one", use="enc"),
        public_jwk(rsa_key("one"), "one", alg="RS512"),
        public_jwk(ec.generate_private_key(ec.SECP384R1()), "one"),
        public_jwk(rsa_key("one"), "one", n="####"),
        {"kty": "oct", "kid": "one", "k": "c2VjcmV0"},
        {"kty": "RSA", "kid": "one"},
        {"kty": ["RSA"], "kid": "one"},
        {"kid": ["one"]},
        "one",
    ],
    ids=["small", "encrypts", "RS512", "P-384", "garbage", "secret", "empty", "list", "no name", "text"],
)
def test_key_that_is_not_fit_is_not_used(trusting: Stage, issuer: Issuer, listed: object) -> None:
    issuer.jwks = [listed, public_jwk(issuer.keys["curve"], "curve")]
    is_small = listed == public_jwk(rsa_key("small", 1024), "one")
    signer = rsa_key("small", 1024) if is_small else rsa_key("one")
    assert ask(trusting, issuer.token("one", signer)).status == 401
    assert ask(trusting, issuer.token("curve")).status == 200


def answering(code: int, body: bytes = b"{}", **headers: str) -> Fault:
    return lambda request, _stopped: respond(request, code, body, **headers)


def drip(request: BaseHTTPRequestHandler, stopped: Event) -> None:
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not stopped.wait(0.05):
        request.wfile.write(b"X: y\r\n")


def hang(_request: BaseHTTPRequestHandler, stopped: Event) -> None:
    stopped.wait(10)


FAULTS = {
    "500": answering(500),
    "404": answering(404),
    "redirect": answering(302, location="http://127.0.0.1:1/"),
    "no JSON": answering(200, b"<html>"),
    "a list": answering(200, b"[]"),
    "nested": answering(200, NESTED),
    "empty": answering(200, b""),
    "of another": answering(200, b'{"issuer": "https://login.example.com"}'),
    "dripping": drip,
    "hanging": hang,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_issuer_that_does_not_answer_is_a_503_within_two_seconds(
    trusting: Stage, issuer: Issuer, fault: Fault, stage: Stage
) -> None:
    issuer.fault = fault
    began = time.monotonic()
    answer = ask(trusting, issuer.token())
    assert time.monotonic() - began < 3
    assert (answer.status, answer.headers["retry-after"], answer.body["title"]) == (503, "5", "IssuerUnavailable")
    own = client_of(stage)
    assert ask(trusting, own.token).status == 200, "our own tokens need no issuer"
    asked = len(issuer.asked)
    assert ask(trusting, issuer.token(), NOON + timedelta(seconds=4)).status == 503
    assert len(issuer.asked) == asked, "and it is left alone for a moment"
    issuer.fault = None
    assert ask(trusting, issuer.token(), NOON + timedelta(seconds=5)).status == 200


@pytest.mark.parametrize(
    "about",
    [
        {"jwks_uri": None},
        {"jwks_uri": "ftp://x/"},
        {"jwks_uri": "http://example.com/keys"},
        {"jwks_uri": 7},
        {"issuer": "http://127.0.0.1"},
    ],
)
def test_keys_are_only_taken_from_where_the_issuer_keeps_them_safely(
    trusting: Stage, issuer: Issuer, about: dict[str, Any]
) -> None:
    issuer.about = about
    assert ask(trusting, issuer.token()).status == 503
    assert "/realm/keys" not in issuer.asked


def test_keys_are_not_fetched_without_tls_but_on_loopback(trusting: Stage, issuer: Issuer) -> None:
    issuer.about = {"jwks_uri": f"{issuer.url}/keys".replace("127.0.0.1", "127.1")}  # a name that leads here
    answer = ask(trusting, issuer.token())
    assert (answer.status, "without TLS" in answer.body["detail"], len(issuer.asked)) == (503, True, 1)


@pytest.mark.parametrize(("status", "blanks"), [(500, 0), (404, 0), (201, 0), (200, 70_000)])
def test_good_keys_in_a_bad_answer_are_not_taken(trusting: Stage, issuer: Issuer, status: int, blanks: int) -> None:
    issuer.fault = lambda request, _: respond(request, status, issuer.answer(request.path) + b" " * blanks)
    assert ask(trusting, issuer.token()).status == 503


@pytest.mark.parametrize("jwks", [[], {}, "keys", [{}]])
def test_issuer_without_keys_is_a_503(trusting: Stage, issuer: Issuer, jwks: Any) -> None:
    issuer.jwks = jwks
    assert ask(trusting, issuer.token()).status == 503


def test_nobody_listening_is_a_503(stage: Stage) -> None:
    with Issuer() as gone:
        token = gone.token()
    assert ask(stage.another(jwt_issuer=f"{gone.url} {AUDIENCE}"), token).status == 503


def test_known_keys_stay_good_while_the_issuer_is_away(trusting: Stage, issuer: Issuer) -> None:
    assert ask(trusting, issuer.token()).status == 200
    issuer.fault = answering(500)
    later = NOON + timedelta(hours=2)
    assert ask(trusting, issuer.token(), later).status == 200
    new = issuer.token("two", rsa_key("two"))
    assert ask(trusting, new, later).status == 503, "nobody can say whether the issuer has this key"


# ---- where it is not taken


def test_stack_without_an_issuer_takes_no_such_token(stage: Stage, issuer: Issuer) -> None:
    assert ask(stage, issuer.token()).status == 401
    assert issuer.asked == []


def test_own_tokens_are_taken_as_before(stage: Stage, trusting: Stage, issuer: Issuer) -> None:
    assert ask(trusting, client_of(stage).token).status == 200
    assert ask(trusting, "sbx_wrong").status == 401
    assert issuer.asked == []


def test_pages_take_no_token_of_an_issuer(trusting: Stage, issuer: Issuer) -> None:
    event = request_event("POST", "/login", f"token={issuer.token()}", host="127.0.0.1")
    answer = trusting.app.operate(event, trusting.invocation())
    assert (answer["statusCode"], "cookies" in answer, issuer.asked) == (401, False, [])
