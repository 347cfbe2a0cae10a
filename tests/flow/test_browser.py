"""People operate a stack by its pages in a browser: headless Chromium, on the laptop's stack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import distribution
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from signalbox import HttpClient
from signalbox.testing.rows import missed_slot
from tests.support.browser import Browser, browser
from tests.support.command_line import detached_stack
from tests.support.template import ROOT

SCREENSHOTS = ROOT / ".signalbox" / "screenshots"
NUMBERS = count()
# The rules of WCAG 2.2, level AA. What is worse than moderate fails.
AXE = """
return axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']}).then((found) => found.violations
  .filter((one) => ['serious', 'critical'].includes(one.impact))
  .map((one) => one.id + ': ' + one.nodes.map((node) => node.html).join('; ').slice(0, 300)))
"""


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with detached_stack(tmp_path_factory) as announced:
        yield announced


@pytest.fixture(scope="session")
def window(stack: dict[str, Any]) -> Iterator[Browser]:
    with browser() as window:
        window.resize(1400)
        window.open(f"{stack['api']}/login#token={stack['token']}")
        window.until("return location.pathname === '/'")
        yield window


@pytest.fixture
def api(stack: dict[str, Any]) -> HttpClient:
    return HttpClient(stack["api"], stack["token"])


@pytest.fixture
def page(stack: dict[str, Any], window: Browser) -> Iterator[Browser]:
    window.resize(1400)
    yield window
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    window.screenshot(SCREENSHOTS / f"{next(NUMBERS):02}.png")


def failed_job(api: HttpClient, table: str) -> str:
    """Return the id of a job that has failed for good: the stack opens no table to exports."""
    job = api.submit("export_table", {"table": f"public.{table}"}, max_attempts=1)
    return wait_for(api, job["id"], "failed")


def wait_for(api: HttpClient, job_id: str, status: str) -> str:
    for _ in range(300):
        if api.ask("GET", f"/v1/jobs/{job_id}")["job"]["status"] == status:
            return job_id
    raise AssertionError(f"the job is not {status}")


def test_session_is_kept_from_scripts(page: Browser) -> None:
    [cookie] = page.cookies
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.run("return document.cookie") == ""


def test_job_is_watched_while_it_runs(stack: dict[str, Any], page: Browser, api: HttpClient) -> None:
    job = api.submit("run_task", {"task": "prune_history"}, delay_seconds=600)
    page.open(f"{stack['api']}/jobs/{job['id']}")
    page.until_text("was submitted for a later time")
    page.run("window.stays = true")
    lead = page.run("return document.querySelector('#job .why')")
    page.drag(lead, lead)  # the pointer is over what changes
    api.ask("POST", f"/v1/jobs/{job['id']}/retry", {})
    page.until_text("completed", "#job .lead")
    page.until_text("attempt 1 completed")
    assert page.run("return window.stays"), "it was not loaded again"


def test_dead_letter_is_resolved_and_another_redriven(stack: dict[str, Any], page: Browser, api: HttpClient) -> None:
    jobs = [failed_job(api, "letters") for _ in range(2)]
    page.open(f"{stack['api']}/dead-letters")
    page.press("#kinds a", "export_table")
    page.until("return document.querySelectorAll('#letters tbody tr').length === 2")
    page.press("#letters tbody tr a")
    page.type("input[aria-label='Reason to resolve']", "not needed")
    page.press("button", "Resolve")
    page.until_text("resolved", "#letter .lead")
    page.press("#letter a", "its kind of failure")
    page.press("#letters tr:has(.pending) a")
    page.press("button", "Check and compare")
    page.until_text("The same as before.")
    page.press("button", "Redrive with this payload")
    page.until_text("1 redriven")
    statuses = sorted(api.ask("GET", f"/v1/jobs/{id_}")["dead_letter"]["status"] for id_ in jobs)
    assert statuses[1] == "resolved"
    assert statuses[0] in ("pending", "redriven")


def test_backfill_starts_from_a_gap_in_two_presses(stack: dict[str, Any], page: Browser, api: HttpClient) -> None:
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    with psycopg.connect(stack["database"], autocommit=True) as db:
        for quarter in range(3):
            missed_slot(db, "requeue_deferred", hour + timedelta(minutes=15 * quarter))
    page.open(f"{stack['api']}/timetable?task=requeue_deferred&span=6h")
    first, last = page.run("const all = document.querySelectorAll('button.cell.missed'); return [all[0], all[2]]")
    page.drag(first, last)
    page.until_text("3 would run", "#plan")
    page.open(f"{stack['api']}/timetable?task=requeue_deferred&span=6h")
    page.press("button.cell.missed")
    page.until_text("1 would run", "#plan")
    page.press("#start")
    page.until_text("1 of 1 slots", "#backfill")
    [backfill] = api.ask("GET", "/v1/backfills")["backfills"]
    assert (backfill["task"], backfill["requested_by"]) == ("requeue_deferred", "laptop")


def test_jobs_are_cancelled_together_after_a_preview(stack: dict[str, Any], page: Browser, api: HttpClient) -> None:
    jobs = [api.submit("run_task", {"task": "prune_jobs"}, delay_seconds=600, tags=["bulk"]) for _ in range(3)]
    page.open(f"{stack['api']}/jobs?tag=bulk")
    page.press("form:not(#bulk) button", "Cancel …")
    page.until_text("3 jobs match", ".panel")
    page.type(".panel input[name=reason]", "a mistake")
    page.press(".panel button", "Cancel 3 jobs")
    page.until_text("3 cancelled", ".notice")
    assert {api.ask("GET", f"/v1/jobs/{job['id']}")["job"]["status"] for job in jobs} == {"cancelled"}


def test_rows_stay_under_the_pointer_and_are_held_by_a_key(
    stack: dict[str, Any], page: Browser, api: HttpClient
) -> None:
    rows = "return [...document.querySelectorAll('#list tr[id]')].map((row) => row.id)"
    kept = api.submit("run_task", {"task": "prune_jobs"}, delay_seconds=600, tags=["still"])
    page.open(f"{stack['api']}/jobs?tag=still")
    row = page.until("return document.querySelector('#list tr[id]')")
    page.drag(row, row)
    api.submit("run_task", {"task": "prune_jobs"}, delay_seconds=600, tags=["still"])
    api.ask("POST", f"/v1/jobs/{kept['id']}/cancel", {})
    page.until_text("cancelled", f"#j-{kept['id']}")
    assert page.run(rows) == [f"j-{kept['id']}"]
    page.press("h1")
    page.drag(*[page.run("return document.querySelector('h1')")] * 2)
    page.until("return document.querySelectorAll('#list tr[id]').length === 2")
    page.keys("body", "h")
    page.until_text("Updates are held.", "footer")
    page.keys("body", "h")
    page.until("return !document.querySelector('footer').innerText.includes('held.')")


def test_keys_lead_to_pages_and_are_listed(stack: dict[str, Any], page: Browser) -> None:
    page.open(f"{stack['api']}/jobs")
    page.keys("body", "?")
    page.until_text("The first field of the page", "dialog[open]")
    page.press("dialog button")
    page.keys("body", "gt")
    page.until("return location.pathname === '/timetable'")
    assert page.text("h1") == "Timetable"


def paths(api: HttpClient) -> list[str]:
    job_id = failed_job(api, "axe")
    letter = api.ask("GET", f"/v1/jobs/{job_id}")["dead_letter"]
    action = api.ask("POST", "/v1/jobs/pause", {"tag": "axe"})["bulk_action"]
    cell = f"{datetime.now(UTC) - timedelta(hours=1):%Y-%m-%dT%H:00}"
    return [
        *("/", "/timetable", "/jobs", f"/jobs/{job_id}", "/dead-letters", "/bulk-actions", "/backfills"),
        *("/schedules", "/caps", f"/bulk-actions/{action}"),
        f"/timetable?task=requeue_deferred&cell=requeue_deferred+{cell}",
        *(f"/dead-letters/{letter['id']}", f"/dead-letters/kinds/{letter['fingerprint']}", "/login", "/nothing"),
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1400])
def test_pages_have_no_serious_fault_of_access(
    stack: dict[str, Any], page: Browser, api: HttpClient, width: int, *, dark: bool
) -> None:
    script = Path(str(distribution("axe-playwright-python").locate_file("axe_playwright_python/axe.min.js")))
    axe = script.read_text("utf-8")
    api.submit("run_task", {"task": "prune_jobs"}, delay_seconds=600)
    faults = {}
    for number, path in enumerate(paths(api)):
        page.open(stack["api"] + path)
        page.resize(width, dark=dark)
        page.run(axe)
        faults[path] = page.run(AXE)
        if page.run("return document.documentElement.scrollWidth > innerWidth"):
            faults[path] += ["the page is wider than the window"]
        page.screenshot(SCREENSHOTS / f"{width}-{'dark' if dark else 'light'}-{number:02}.png")
    assert not {path: found for path, found in faults.items() if found}, json.dumps(faults, indent=1)
