"""Whatever a request holds, the HTTP API answers it or refuses it, and never fails."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbox.api.routes import ROUTES, Route
from signalbox.pages.serve import ACTIONS, PAGES
from signalbox.testing.stage import Stage
from tests.support.http_api import HttpClient, client_of
from tests.support.visitor import Visitor

ID = "01a1f5ab-6ece-7d78-aa22-f7a61e63bba7"
TEXTS = st.sampled_from(
    ["", "x", ID, ID[:8], "0", "-1", "99999999999999999999", "true", "null", "2026-03-10T12:00:00Z", "2026-03-10",
     "type", "lane", "do_nothing", "prune_history", "failed", "a/b", "%", "'", "\0", "\ud800", "é" * 300, "UTC"]
)  # fmt: skip
VALUES = st.recursive(
    TEXTS | st.integers() | st.floats() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


# What people type into a page's fields.
TYPED = TEXTS | st.sampled_from(
    ["2d", "999999w", "0s", "0001-01-01", "9999-12-31", "9999-12-31T23:59:59Z", "nan", "inf", "1e999", "9" * 5000,
     "[" * 3000, "{}", '{"a": 1}', "poll_data 9999-12-31T23:59", "poll_data 2026-03-10T11:00", "/jobs?tag=a",
     "//x", "cancel_jobs"]
)  # fmt: skip
NAMES = st.sampled_from(
    ["hours", "task", "since", "until", "span", "cell", "from", "to", "gap_before", "only", "rate_per_minute",
     "job_type", "status", "payload", "before_id", "before", "limit", "by_kind", "all", "after", "tag", "ids", "id.x",
     "dry_run", "_next"]
)  # fmt: skip


@pytest.fixture
def visitor(stage: Stage) -> Visitor:
    return Visitor(stage).log_in()


@pytest.fixture
def http(stage: Stage) -> HttpClient:
    return client_of(stage)


def filled(route: Route, names: list[str]) -> str:
    """Return the route's path with these in the place of its names."""
    path = route.path
    for name, text in zip(route.in_path, names, strict=False):
        path = path.replace(f"{{{name}}}", text)
    return path


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_no_request_makes_it_fail(http: HttpClient, route: Route, data: st.DataObject) -> None:
    path = filled(route, data.draw(st.lists(TEXTS, min_size=2, max_size=2)))
    fields = data.draw(st.dictionaries(st.sampled_from([*route.fields, "unknown"]), VALUES, max_size=3))
    if route.method == "GET":
        query = "&".join(f"{name}={quote(str(value), errors='replace')}" for name, value in fields.items())
        answer = http("GET", f"{path}?{query}")
    else:
        answer = http(route.method, path, fields)
    assert answer.status < 500, answer.body
    if answer.status >= 400:
        assert answer.body["status"] == answer.status
        assert answer.body["detail"]


@pytest.mark.parametrize("path", PAGES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(query=st.dictionaries(NAMES, TYPED, max_size=3))
def test_no_query_makes_a_page_fail(visitor: Visitor, path: str, query: dict[str, str]) -> None:
    path = path.replace("{id}", ID).replace("{fingerprint}", "f0")
    answer = visitor.get(f"{path}?{urlencode(query, errors='replace')}")
    assert answer.status < 500, query


@pytest.mark.parametrize("action", sorted(ACTIONS))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(fields=st.dictionaries(NAMES, TYPED, max_size=4), path=st.sampled_from(list(PAGES)))
def test_no_form_makes_a_page_fail(visitor: Visitor, action: str, fields: dict[str, str], path: str) -> None:
    own = {"_form": visitor.get("/jobs").html.forms[0].fields["_form"], "_next": path.replace("{id}", ID)}
    sent = {name: text.encode("utf-8", "replace").decode() for name, text in (own | fields).items()}
    assert visitor.post(f"/act/{action}", sent).status < 500, fields
