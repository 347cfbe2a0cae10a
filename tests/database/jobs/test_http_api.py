"""The HTTP API serves operations to those who have a token."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from signalbox.api.request import HttpRequest
from signalbox.api.response import HttpResponse
from signalbox.errors import TokenRefused
from signalbox.invocation import Invocation, Resources
from signalbox.packs.pack import Pack, PackRoute
from signalbox.testing.rows import select
from signalbox.testing.stage import Stage
from tests.support.http_api import HttpClient, client_of, request_event


@pytest.fixture
def http(stage: Stage) -> HttpClient:
    return client_of(stage)


def test_job_is_submitted_listed_and_shown(stage: Stage, http: HttpClient) -> None:
    made = http("POST", "/v1/jobs", {"job_type": "do_nothing", "tenant": "acme"})
    assert (made.status, made.body["status"], made.body["created"]) == (201, "queued", True)
    listed = http("GET", "/v1/jobs?tenant=acme&limit=5&status=queued")
    assert [job["id"] for job in listed.body["jobs"]] == [made.body["id"]]
    shown = http("GET", f"/v1/jobs/{made.body['id']}")
    assert (shown.status, shown.body["job"]["created_by"]) == (200, "tests")
    progress = http("GET", f"/v1/jobs/{made.body['id']}/progress").body["progress"]
    assert (progress["status"], progress["progress_percent"], progress["attempts"]) == ("queued", 0, 0)
    assert shown.headers["x-request-id"] == "request-7"


def test_each_submit_over_http_is_in_the_audit_log_once(stage: Stage, http: HttpClient) -> None:
    made = http("POST", "/v1/jobs", {"job_type": "do_nothing"}).body["id"]
    jobs = [{"job_type": "do_nothing", "idempotency_key": str(number)} for number in (1, 2, 2)]
    http("POST", "/v1/jobs/batch", {"jobs": jobs})
    http("POST", "/v1/jobs/batch", {"jobs": jobs, "dry_run": True})
    noted = select(stage.db, "SELECT * FROM signalbox.audit_log WHERE action = 'job.submit' ORDER BY id")
    assert [(row["actor"], row["entity_type"], row["entity_id"]) for row in noted] == [
        ("tests", "job", made),
        ("tests", "jobs", ""),
    ]
    assert noted[1]["detail"] == {"jobs": 3, "created": 2, "job_types": ["do_nothing"]}


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "words"),
    [
        ("GET", "/v1/nothing", None, 404, "nothing is served at /v1/nothing"),
        ("GET", "/v1/jobs/", None, 200, ""),
        ("PATCH", "/v1/jobs", None, 405, "/v1/jobs takes GET and POST, not PATCH"),
        ("GET", "/v1/jobs/00000000-0000-7000-8000-000000000000", None, 404, "no job has the id"),
        ("GET", "/v1/jobs/7", None, 422, "'7' is not the id of a job"),
        ("GET", "/v1/jobs?limit=many", None, 422, "field 'limit'"),
        ("GET", "/v1/jobs?limit=1&limit=2", None, 422, "'limit' is given twice"),
        ("GET", "/v1/jobs?stauts=failed", None, 422, "did you mean 'status'?"),
        ("GET", "/v1/jobs?by=me", None, 422, "field 'by' is not known"),
        ("POST", "/v1/jobs", "{", 400, "the body is no JSON"),
        ("POST", "/v1/jobs", "[]", 400, "must be a JSON object"),
        ("POST", "/v1/jobs", {}, 422, "field 'jobs.0.job_type' is missing"),
        ("POST", "/v1/jobs", {"job_type": "do_nothin"}, 422, "did you mean 'do_nothing'?"),
        ("POST", "/v1/jobs?limit=1", {"job_type": "do_nothing"}, 422, "in a JSON body, not in the query"),
        ("POST", "/v1/jobs", "x" * 1_000_001, 413, "at most 1,000,000 are taken"),
        ("POST", "/v1/jobs/cancel", {}, 422, "this would affect every job"),
    ],
)
def test_request_that_is_wrong_is_refused_with_the_reason(
    http: HttpClient, method: str, target: str, body: object, status: int, words: str
) -> None:
    answer = http(method, target, body)
    assert answer.status == status
    if words:
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.body["status"], answer.body["request_id"]) == (status, "request-7")
        assert words in answer.body["detail"]


def test_problem_names_each_wrong_field(http: HttpClient) -> None:
    problem = http("GET", "/v1/jobs?limit=0&status=done").body
    assert [fault["field"] for fault in problem["errors"]] == ["status", "limit"]


@pytest.mark.parametrize("token", ["", "sbx_wrong", "wrong"])
def test_request_without_a_good_token_is_refused(stage: Stage, token: str) -> None:
    answer = HttpClient(stage, token)("GET", "/v1/jobs")
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer realm="signalbox"')


def test_unchanged_answer_is_not_sent_again(stage: Stage, http: HttpClient) -> None:
    first = http("GET", "/v1/jobs")
    assert http("GET", "/v1/jobs", if_none_match=first.headers["etag"]).status == 304
    stage.submit("do_nothing")
    assert http("GET", "/v1/jobs", if_none_match=first.headers["etag"]).status == 200


def test_submit_with_an_idempotency_key_makes_one_job(http: HttpClient) -> None:
    first, second = (http("POST", "/v1/jobs", {"job_type": "do_nothing"}, idempotency_key="k") for _ in range(2))
    assert (first.status, second.status, second.body["created"]) == (201, 200, False)
    assert first.body["id"] == second.body["id"]
    jobs = {"jobs": [{"job_type": "do_nothing"}] * 2}
    batch, again = (http("POST", "/v1/jobs/batch", jobs, idempotency_key="b") for _ in range(2))
    assert (batch.status, batch.body["created"], again.status, again.body["created"]) == (201, 2, 200, 0)


def test_request_with_a_known_key_gets_the_first_response(stage: Stage, http: HttpClient) -> None:
    body = {"task": "prune_history", "from": "2026-03-10T00:00:00Z", "to": "2026-03-10T05:00:00Z"}
    first, again = (http("POST", "/v1/backfills", body, idempotency_key="night") for _ in range(2))
    assert (first.status, again.status, first.body) == (201, 201, again.body)
    assert again.headers["idempotency-replayed"] == "true"
    other = http("POST", "/v1/backfills", body | {"force": True}, idempotency_key="night")
    assert (other.status, other.body["title"]) == (422, "KeyReused")
    assert len(http("GET", "/v1/backfills").body["backfills"]) == 1
    assert client_of(stage, name="other")("POST", "/v1/backfills", body, idempotency_key="night").body != first.body


def test_openapi_is_for_those_who_have_a_token(stage: Stage, http: HttpClient) -> None:
    assert HttpClient(stage)("GET", "/openapi.json").status == 401
    document = http("GET", "/openapi.json").body
    assert document["openapi"] == "3.1.0"
    body = document["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert (body["required"], "by" in body["properties"]) == (["job_type"], False)
    for name in re.findall(r'"#/components/schemas/([^"]*)"', json.dumps(document)):
        assert name in document["components"]["schemas"]


def test_fault_of_ours_is_counted_and_not_shown(
    stage: Stage, http: HttpClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("signalbox.operations.jobs.list_jobs", fail)
    answer = http("GET", "/v1/jobs")
    assert (answer.status, "secret" in str(answer.body), "request-7" in answer.body["detail"]) == (500, False, True)
    assert '"RequestsFailed":[1.0]' in capsys.readouterr().out


def test_database_that_is_away_is_said_and_counted(
    stage: Stage, http: HttpClient, capsys: pytest.CaptureFixture[str]
) -> None:
    away = stage.another(database_url="postgresql://nobody@127.0.0.1:1/nothing")
    answer = HttpClient(away, http.token)("GET", "/v1/jobs")
    assert (answer.status, answer.headers["retry-after"], answer.body["title"]) == (503, "5", "DatabaseUnavailable")
    assert '"DatabaseUnreachable":[1.0]' in capsys.readouterr().out


def test_connection_lost_in_the_middle_is_a_503(http: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: Any) -> None:
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr("signalbox.operations.jobs.list_jobs", lose)
    answer = http("GET", "/v1/jobs")
    assert (answer.status, "send the request again" in answer.body["detail"]) == (503, True)


def test_event_without_headers_or_body_is_answered(stage: Stage) -> None:
    event = request_event("GET", "/v1/jobs")
    del event["headers"]
    assert stage.app.operate(event, stage.invocation())["statusCode"] == 401


def test_figures_are_served_as_open_metrics(stage: Stage, http: HttpClient) -> None:
    stage.work(stage.submit("do_nothing"), stage.submit("obey", payload={"word": "fail_for_good"}))
    stage.submit("do_nothing", priority=9)
    answer = http("GET", "/metrics", at=datetime.now(UTC))
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    found = dict(line.rsplit(" ", 1) for line in answer.body.splitlines() if not line.startswith("#"))
    assert found['signalbox_jobs{lane="low",status="queued"}'] == "1"
    assert found['signalbox_attempts_last_hour{job_type="do_nothing",outcome="completed"}'] == "1"
    assert found['signalbox_open_dead_letters{job_type="obey"}'] == "1"
    assert float(found['signalbox_attempt_duration_seconds_last_hour{job_type="do_nothing",quantile="0.95"}']) < 60
    assert answer.body.endswith("# EOF\n")


def test_name_in_a_path_may_hold_a_slash_and_other_marks(http: HttpClient) -> None:
    name = "night/100 % é"
    assert http("PUT", f"/v1/caps/key/{quote(name, safe='')}", {"max_running": 1}).body["control"]["key"] == name
    assert http("DELETE", f"/v1/caps/key/{quote(name, safe='')}").body["control"] is None


def test_jobs_are_found_by_fields_of_their_payload_within_a_day(stage: Stage, http: HttpClient) -> None:
    first, _ = (stage.submit("obey", payload={"word": word}) for word in ("complete", "fail"))
    since = quote((datetime.now(UTC) - timedelta(hours=1)).isoformat())
    payload = quote('{"word": "complete"}')
    found = http("GET", f"/v1/jobs?job_type=obey&since={since}&payload={payload}").body["jobs"]
    assert [job["id"] for job in found] == [first]
    long_ago = quote((datetime.now(UTC) - timedelta(hours=25)).isoformat())
    assert http("GET", f"/v1/jobs?job_type=obey&since={long_ago}&payload={payload}").body["jobs"] == []
    for query in (f"payload={payload}", f"job_type=obey&payload={payload}", f"since={since}&payload={payload}"):
        answer = http("GET", f"/v1/jobs?{query}")
        assert (answer.status, "needs the type" in answer.body["detail"]) == (422, True)


def test_expired_and_revoked_tokens_are_refused(stage: Stage) -> None:
    expired, revoked = (client_of(stage, name=name) for name in ("expired", "revoked"))
    stage.db.execute("UPDATE signalbox.api_tokens SET expires_at = now() - interval '1 s' WHERE name = 'expired'")
    stage.operate("revoke_token", name="revoked", by="jo")
    assert [client("GET", "/v1/jobs").status for client in (expired, revoked)] == [401, 401]
    assert [row["revoked_by"] for row in stage.operate("list_tokens")["tokens"]] == [None, "jo"]
    with pytest.raises(TokenRefused, match="no token named 'revoked' is in use"):
        stage.operate("revoke_token", name="revoked")


def test_name_of_a_token_in_use_is_taken(stage: Stage, http: HttpClient) -> None:
    with pytest.raises(TokenRefused, match="a token named 'tests' is in use"):
        stage.operate("create_token", name="tests")
    stage.operate("create_token", name="tests", replacing=True)
    assert http("GET", "/v1/jobs").status == 401


def test_request_with_a_key_is_at_work_until_its_function_counts_as_dead(stage: Stage, http: HttpClient) -> None:
    body = {"task": "prune_history", "from": "2026-03-10T00:00:00Z", "to": "2026-03-10T05:00:00Z"}
    assert http("POST", "/v1/backfills", body, idempotency_key="k").status == 201
    stage.db.execute("UPDATE signalbox.api_requests SET status = NULL")
    at_work = http("POST", "/v1/backfills", body, idempotency_key="k")
    assert (at_work.status, at_work.body["title"]) == (409, "RequestInProgress")
    stage.db.execute("UPDATE signalbox.api_requests SET began_at = now() - interval '3 min'")
    assert http("POST", "/v1/backfills", body, idempotency_key="k").status == 201


def test_refused_request_leaves_its_key_free(http: HttpClient) -> None:
    wrong = {"task": "prune_history", "from": "2026-03-10T05:00:00Z", "to": "2026-03-10T00:00:00Z"}
    assert http("POST", "/v1/backfills", wrong, idempotency_key="k").status == 422
    made = http("POST", "/v1/backfills", wrong | {"from": "2026-03-09T00:00:00Z"}, idempotency_key="k")
    assert made.status == 201
    cancel = f"/v1/backfills/{made.body['backfill']['id']}/cancel"
    assert [http("POST", cancel).status for _ in range(2)] == [200, 409]


def test_removal_of_a_cap_sets_none(http: HttpClient) -> None:
    http("PUT", "/v1/caps/tenant/acme", {"max_running": 5})
    assert http("DELETE", "/v1/caps/tenant/acme", {"max_running": 7}).status == 422
    assert http("DELETE", "/v1/caps/tenant/acme").body["control"] is None


@pytest.mark.parametrize("half", ["\ud800", "a\0b"])
def test_odd_characters_anywhere_are_refused_in_ascii(stage: Stage, http: HttpClient, half: str) -> None:
    answers = [
        HttpClient(stage, f"sbx_{half}")("GET", "/v1/jobs"),
        http("POST", "/v1/backfills", {}, idempotency_key=half),
        http("POST", "/v1/jobs", {"job_type": "do_nothing"}, idempotency_key=half),
        http("POST", "/v1/jobs", {half: 1}),
    ]
    assert [answer.status for answer in answers] == [401, 422, 422, 422]
    raw = stage.app.operate(request_event("POST", "/v1/jobs", {half: 1}, http.token), stage.invocation())
    assert raw["body"].isascii()


def open_file(_: Resources, request: HttpRequest, in_path: Mapping[str, str], __: Invocation) -> HttpResponse:
    if in_path["token"] == "late":
        return HttpResponse(410, "the link has expired: ask for a new one")
    return HttpResponse(302, "", {"location": f"/files/{in_path['token']}?{request.query['v']}"})


ROUTE = PackRoute("GET", "/shared/files/{token}", f"{__name__}.open_file")


def test_pack_answers_its_own_routes_without_a_token(stage: Stage) -> None:
    stage = stage.with_packs(Pack("files", (), Path("none"), routes=(ROUTE,)))
    nobody = HttpClient(stage)
    moved = nobody("GET", "/shared/files/a%2Fb?v=1")
    assert (moved.status, moved.headers["location"]) == (302, "/files/a/b?1")
    assert nobody("GET", "/shared/files/late").status == 410
    assert nobody("POST", "/shared/files/a").status == 404
    assert nobody("GET", "/shared/files/").status == 303, "a page, for which one logs in"
    assert nobody("GET", "/v1/jobs").status == 401


def test_completion_of_a_group_has_no_name_within_a_batch(stage: Stage, http: HttpClient) -> None:
    stage.submit("do_nothing", group="night")
    refused = http("POST", "/v1/groups/night/seal", {"completion": {"job_type": "do_nothing", "ref": "last"}})
    assert (refused.status, [fault["field"] for fault in refused.body["errors"]]) == (422, ["completion.ref"])
    assert http("POST", "/v1/groups/night/seal", {"completion": {"job_type": "do_nothing"}}).status == 200
