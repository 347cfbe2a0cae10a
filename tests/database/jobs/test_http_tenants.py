"""A token that is bound to a tenant meets that tenant's jobs and dead letters alone; a viewer changes nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from signalbox.api.routes import ROUTES, Route
from signalbox.jobs.dependency import Dependency
from signalbox.submit.new_job import NewJob
from signalbox.testing.stage import Stage
from tests.support.http_api import HttpClient, client_of

ID = "01a1f5ab-6ece-7d78-aa22-f7a61e63bba7"


@pytest.fixture
def acme(stage: Stage) -> HttpClient:
    return client_of(stage, tenant="acme", name="acme")


def fail(stage: Stage, tenant: str) -> tuple[str, str]:
    """Return a failed job of the tenant, and its dead letter."""
    job_id = stage.submit("obey", payload={"word": "fail_for_good"}, tenant=tenant)
    stage.work(job_id)
    return job_id, str(stage.dead_letter(job_id)["id"])


@pytest.mark.parametrize("action", ["", "/progress", "/explanation", "/cancel", "/retry", "/pause", "/resume"])
def test_job_of_another_tenant_is_unknown(stage: Stage, acme: HttpClient, action: str) -> None:
    own, other = (stage.submit("do_nothing", tenant=tenant) for tenant in ("acme", "other"))
    method = "GET" if action in ("", "/progress", "/explanation") else "POST"
    answers = [acme(method, f"/v1/jobs/{id_}{action}") for id_ in (other, ID)]
    assert [answer.status for answer in answers] == [404, 404]
    assert answers[0].body["detail"].replace(other, ID) == answers[1].body["detail"]
    assert stage.status(other) == "queued"
    assert acme(method, f"/v1/jobs/{own}{action}").status != 404


@pytest.mark.parametrize("action", ["", "/triage", "/redrive"])
def test_dead_letter_of_another_tenant_is_unknown(stage: Stage, acme: HttpClient, action: str) -> None:
    [(_, own), (_, other)] = (fail(stage, tenant) for tenant in ("acme", "other"))
    body = {"decision": "ignored"} if action == "/triage" else None
    method = "POST" if action else "GET"
    assert acme(method, f"/v1/dead-letters/{other}{action}", body).status == 404
    assert acme(method, f"/v1/dead-letters/{own}{action}", body).status == 200


def test_lists_and_bulk_actions_stay_within_the_tenant(stage: Stage, acme: HttpClient) -> None:
    own, other = (fail(stage, tenant)[0] for tenant in ("acme", "other"))
    assert [job["id"] for job in acme("GET", "/v1/jobs").body["jobs"]] == [own]
    assert [letter["original_job_id"] for letter in acme("GET", "/v1/dead-letters").body["dead_letters"]] == [own]
    assert [kind["total"] for kind in acme("GET", "/v1/dead-letters/kinds").body["kinds"]] == [1]
    assert acme("POST", "/v1/dead-letters/redrive", {"job_type": "obey"}).body["redriven"] == 1
    assert stage.statuses(own, other) == ["pending", "failed"]
    assert acme("POST", "/v1/jobs/cancel", {"job_type": "obey"}).body["cancelled"] == 1
    assert acme("GET", "/v1/jobs?tenant=other").status == 422


def test_bulk_action_of_another_tenant_is_unknown(stage: Stage, acme: HttpClient) -> None:
    own, other = (stage.operate("pause", tenant=tenant)["bulk_action"] for tenant in ("acme", "other"))
    assert [one["id"] for one in acme("GET", "/v1/bulk-actions").body["bulk_actions"]] == [own]
    assert [acme("GET", f"/v1/bulk-actions/{id_}").status for id_ in (own, other)] == [200, 404]
    assert [acme("POST", f"/v1/bulk-actions/{id_}/cancel").status for id_ in (own, other)] == [409, 404]


def test_job_is_shown_without_its_neighbours_of_other_tenants(stage: Stage, acme: HttpClient) -> None:
    parent = stage.submit("do_nothing", tenant="acme", group="night")
    child = stage.submit("do_nothing", tenant="other", parent_id=parent)
    shown = acme("GET", f"/v1/jobs/{parent}").body
    assert (shown["children"], shown["group"]) == ([], None)
    assert [job["id"] for job in client_of(stage)("GET", f"/v1/jobs/{parent}").body["children"]] == [child]


def test_job_is_explained_without_what_concerns_others(stage: Stage, acme: HttpClient) -> None:
    parent = stage.submit("do_nothing", tenant="other")
    child = stage.submit(NewJob("do_nothing", tenant="acme", depends_on=[Dependency(parent)]))
    queued = stage.submit("do_nothing", tenant="acme")
    for job_id, text in ((child, "waits for another job"), (queued, "is queued")):
        answers = [acme("GET", f"/v1/jobs/{job_id}{rest}").body for rest in ("/explanation", "")]
        found = [answers[0]["explanation"], answers[1]["waits"]]
        assert [(one["text"], one["key"], one["detail"]) for one in found] == [(text, None, {})] * 2
        assert parent not in str(answers)


def test_submitted_job_is_of_the_tenant(acme: HttpClient) -> None:
    made = acme("POST", "/v1/jobs", {"job_type": "do_nothing"})
    assert acme("GET", f"/v1/jobs/{made.body['id']}").body["job"]["tenant"] == "acme"


@pytest.mark.parametrize("fields", [{"tenant": "other"}, {"group": "night"}, {"parent_id": "OTHER"},
                                    {"depends_on": ["OTHER"]}, {"idempotency_key": "theirs"}])  # fmt: skip
def test_job_that_reaches_beyond_the_tenant_is_refused(stage: Stage, acme: HttpClient, fields: dict[str, Any]) -> None:
    other = stage.submit("do_nothing", tenant="other", idempotency_key="theirs")
    given = json.loads(json.dumps(fields).replace("OTHER", other))
    answer = acme("POST", "/v1/jobs", {"job_type": "do_nothing", **given})
    assert answer.status in (404, 422)
    assert other not in str(answer.body) or "OTHER" in str(fields)
    assert acme("GET", "/v1/jobs").body["jobs"] == []


def test_pause_of_a_whole_type_is_not_for_a_tenant(acme: HttpClient) -> None:
    assert acme("POST", "/v1/jobs/pause", {"kind": "type", "key": "do_nothing"}).status == 403


PER_TENANT = {
    *(
        "submit_jobs",
        "list_jobs",
        "show_job",
        "show_progress",
        "explain_job",
        "cancel_jobs",
        "retry_jobs",
        "pause",
        "resume",
    ),
    "show_statistics",
    *("list_bulk_actions", "show_bulk_action", "cancel_bulk_action"),
    *("list_dead_letters", "show_dead_letter", "triage_dead_letters", "redrive", "list_job_types", "show_job_type"),
}
STACK_WIDE = [route for route in ROUTES if route.name not in PER_TENANT]


@pytest.mark.parametrize("route", STACK_WIDE, ids=lambda route: f"{route.method} {route.path}")
def test_what_concerns_the_whole_stack_is_not_for_a_tenant(acme: HttpClient, route: Route) -> None:
    assert acme(route.method, route.path.replace("{", "").replace("}", "")).status == 403


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_viewer_reads_and_changes_nothing(stage: Stage, route: Route) -> None:
    answer = client_of(stage, "viewer")(route.method, route.path.replace("{", "").replace("}", ""))
    assert (answer.status == 403) == (route.method != "GET")


def test_figures_are_of_the_tenant_alone(stage: Stage, acme: HttpClient) -> None:
    fail(stage, "acme")
    for tenant in ("acme", "other", "other"):
        stage.submit("do_nothing", tenant=tenant)
    found = acme("GET", "/v1/stats?hours=24", at=datetime.now(UTC)).body
    assert (found["tenant"], found["total"], found["by_status"]["queued"], found["by_status"]["failed"]) == (
        "acme",
        2,
        1,
        1,
    )
    assert sum(lane["waiting"] for lane in found["by_lane"]) == 1
    assert acme("GET", "/v1/stats?tenant=other").status == 422
    assert [acme("GET", f"/v1/stats?{query}=true").status for query in ("tenants", "health")] == [403, 403]
    assert acme("GET", "/v1/stats?hours=25").status == 422
