"""The pages show what the operations answer, and their forms do what they say."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from signalbox.jobs.dependency import Dependency
from signalbox.pages.job import _spans
from signalbox.submit.new_job import NewJob
from signalbox.testing.rows import failed_run, missed_slot, succeeded_run
from signalbox.testing.stage import NOON, Stage
from signalbox_cli.parser import build_parser
from tests.support.dead_letters import add_letter, letter
from tests.support.http_api import client_of
from tests.support.visitor import Page, Visitor

MARKUP = """"><script>alert(1)</script><img src=x onerror=alert(1)>'"""
HOUR = timedelta(hours=1)
KNOWN = "INSERT INTO signalbox.task_schedules VALUES ('poll_data', 'cron(0/15 * * * ? *)', %s, true)"


@pytest.fixture
def visitor(stage: Stage) -> Visitor:
    return Visitor(stage).log_in()


def fail(stage: Stage, **fields: Any) -> tuple[str, dict[str, Any]]:
    job_id = stage.submit("obey", payload={"word": "fail_for_good"}, **fields)
    stage.work(job_id)
    return job_id, stage.dead_letter(job_id)


def commands(page: Page) -> list[str]:
    return [text.strip() for text in page.html.texts if re.match(r"signalbox |curl ", text.strip())]


def test_jobs_are_those_that_the_command_line_lists(stage: Stage, visitor: Visitor) -> None:
    fail(stage, tenant="acme")
    for number in range(55):
        stage.submit("do_nothing", tags=["even"] if number % 2 == 0 else [])
    for query in (
        {},
        {"status": "failed"},
        {"tag": "even", "lane": "normal"},
        {"tenant": "acme"},
        {"job_type": "obey"},
    ):
        page = visitor.get("/jobs?" + "&".join(f"{name}={text}" for name, text in query.items()))
        assert page.html.rows() == [job["id"] for job in stage.operate("list_jobs", NOON, limit=50, **query)["jobs"]]
    [older] = [given["href"] for _, given in visitor.get("/jobs").html.elements if given.get("rel") == "next"]
    assert len(visitor.get(older).html.rows()) == 6
    assert "No job matches." in visitor.get("/jobs?tag=none").text


@pytest.mark.parametrize("query", ["status=done", "since=soon", "payload=%7B%7D", "before_id=7", "job_type=do_nothin"])
def test_filter_that_is_wrong_is_refused_with_the_reason(visitor: Visitor, query: str) -> None:
    page = visitor.get(f"/jobs?{query}")
    assert (page.status, "request-7" in page.text) in {(422, True), (404, True)}
    assert "refused" in page.body


def test_dead_letter_shows_where_its_job_was_and_the_copy_of_its_attempts_once_it_is_pruned(
    stage: Stage, visitor: Visitor
) -> None:
    id_ = add_letter(stage)
    stage.db.execute("""UPDATE signalbox.dead_letter_jobs SET metadata = '{"step": "<b>scan</b>", "page_number": 7}'""")
    stage.db.execute("DELETE FROM signalbox.job_executions")
    page = visitor.get(f"/dead-letters/{id_}")
    assert page.status == 200
    assert all(text in page.text for text in ("Step", "<b>scan</b>", "Page number", "7"))
    assert page.text.count(letter(stage, id_)["final_error_message"]) == 2, "of the letter and of its attempt"


def test_bulk_action_that_goes_on_is_shown_with_its_progress_and_cancelled(
    stage: Stage, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [add_letter(stage) for _ in range(3)]
    kind = visitor.get(f"/dead-letters/kinds/{letter(stage, ids[0])['fingerprint']}")
    preview = visitor.press(kind, "/act/redrive", rate_per_minute="2")
    page = visitor.press(preview, "/act/redrive", reason="mended")
    [running] = stage.operate("list_bulk_actions")["bulk_actions"]
    assert all(text in page.text for text in ("running", "2 done, 1 left", "2 a minute", "mended"))
    assert f"signalbox bulk-actions show {running['id']}" in commands(page)
    assert visitor.get("/bulk-actions").html.rows() == [running["id"]]
    stopped = visitor.press(page, "/act/cancel_bulk_action", reason="enough")
    assert "cancelled" in stopped.text
    assert letter(stage, ids[2])["status"] == "pending"


def test_all_that_match_are_changed_after_a_preview_and_none_that_came_later(stage: Stage, visitor: Visitor) -> None:
    ids = [stage.submit("do_nothing", tenant="acme") for _ in range(3)]
    other = stage.submit("do_nothing", tenant="other")
    preview = visitor.press(visitor.get("/jobs?tenant=acme"), "/act/cancel_jobs", having="tenant")
    assert "3 jobs match: 3 queued." in preview.text
    assert stage.statuses(*ids) == ["queued"] * 3
    [line] = [line for line in commands(preview) if line.startswith("signalbox cancel")]
    build_parser().parse_args(shlex.split(line)[1:])
    assert "--tenant acme --until " in line
    late = stage.submit("do_nothing", tenant="acme")
    done = visitor.press(preview, "/act/cancel_jobs", reason="a mistake")
    assert "3 cancelled" in done.text
    assert stage.statuses(*ids, late, other) == ["cancelled"] * 3 + ["queued"] * 2
    row = stage.db.execute("SELECT actor, detail ->> 'reason' FROM signalbox.audit_log WHERE action LIKE '%cancel%'")
    assert row.fetchall() == [("jo", "a mistake")]


def test_chosen_jobs_alone_are_changed(stage: Stage, visitor: Visitor) -> None:
    ids = [stage.submit("do_nothing") for _ in range(3)]
    fields = {f"id.{ids[0]}": "on", f"id.{ids[2]}": "on"}
    preview = visitor.press(visitor.get("/jobs"), "/act/pause", "_form", **fields)
    assert "2 jobs match" in preview.text
    assert f"signalbox pause jobs {ids[0]} {ids[2]}" in commands(preview) or f"{ids[2]} {ids[0]}" in preview.text
    visitor.press(preview, "/act/pause")
    assert stage.statuses(*ids) == ["paused", "queued", "paused"]


def test_action_without_a_filter_changes_nothing(stage: Stage, visitor: Visitor) -> None:
    job_id = stage.submit("do_nothing")
    refused = visitor.press(visitor.get("/jobs"), "/act/cancel_jobs")
    assert (refused.status, "this would affect every job" in refused.text) == (422, True)
    assert "With all jobs that match" not in visitor.get("/jobs").text
    assert stage.status(job_id) == "queued"


def test_job_shows_why_it_waits_and_what_is_around_it(stage: Stage, visitor: Visitor) -> None:
    parent = stage.submit("do_nothing", tags=["night"])
    child = stage.submit(NewJob("do_nothing", depends_on=[Dependency(parent)]))
    page = visitor.get(f"/jobs/{child}")
    assert f"waits for job {parent}" in page.text
    assert [given["href"] for tag, given in page.html.elements if given.get("href") == f"/jobs/{parent}"]
    assert "night" in visitor.get(f"/jobs/{parent[:13]}").text


def test_time_of_a_job_is_shown_without_gaps(stage: Stage, visitor: Visitor) -> None:
    job_id = stage.submit("obey", payload={"word": "fail"}, max_attempts=2)
    stage.work(job_id)
    stage.make_due(job_id)
    stage.step(job_id)
    found = stage.operate("show_job", id=job_id)
    spans = list(_spans(found, datetime.now(UTC)))
    for before, after in pairwise(spans):
        assert before.until == after.since
    assert spans[0].since == datetime.fromisoformat(found["job"]["created_at"])
    labels = [span.label for span in spans if span.kind in ("failed", "wait")]
    assert [label for label in labels if "attempt" in label] == ["attempt 1 failed", "attempt 2 failed"]
    assert "waits to be retried" in labels
    page = visitor.get(f"/jobs/{job_id}")
    assert all(label in page.text for label in labels)
    assert "Failed for good" in page.text


def test_job_is_cancelled_paused_and_resumed_from_its_page(stage: Stage, visitor: Visitor) -> None:
    job_id = stage.submit("do_nothing")
    for button, status in (("/act/pause", "paused"), ("/act/resume", "pending"), ("/act/cancel_jobs", "cancelled")):
        page = visitor.press(visitor.get(f"/jobs/{job_id}"), button)
        assert (page.status, stage.status(job_id)) == (200, status)
    assert "/act/cancel_jobs" not in page.body


def test_what_users_wrote_is_shown_as_text(stage: Stage, visitor: Visitor) -> None:
    job = NewJob("obey", {"word": "fail_for_good"}, name=MARKUP, tags=[MARKUP], tenant=MARKUP, correlation_id=MARKUP)
    stage.submit(job)
    job_id, letter = fail(stage, name=MARKUP, tags=[MARKUP], tenant=MARKUP)
    stage.db.execute("UPDATE signalbox.dead_letter_jobs SET final_error_message = %s, error_type = %s", [MARKUP] * 2)
    stage.db.execute("UPDATE signalbox.dead_letter_jobs SET payload = %s", [psycopg.types.json.Jsonb({"word": MARKUP})])
    stage.operate("pause", kind="tenant", key=MARKUP, by=MARKUP, reason=MARKUP)
    pages = [
        *(visitor.get(path) for path in ("/", "/jobs", "/dead-letters", "/caps", f"/jobs/{job_id}")),
        visitor.get(f"/dead-letters/{letter['id']}"),
        visitor.get(f"/dead-letters/kinds/{letter['fingerprint']}"),
        visitor.press(visitor.get("/caps"), "/act/set_cap", key=MARKUP),
        visitor.post("/login", {"token": MARKUP, "next": "/" + MARKUP}),
        visitor.get("/nothing/" + MARKUP),
    ]
    for page in pages:
        assert "<script>alert" not in page.body
        assert not [given for tag, given in page.html.elements if given.get("src") == "x" or "onerror" in given]
    assert sum("<script>alert(1)" in page.text for page in pages) >= 7, "the text is there"


def test_kinds_of_failure_are_those_that_the_command_line_lists(stage: Stage, visitor: Visitor) -> None:
    for _ in range(3):
        _, letter = fail(stage)
    page = visitor.get("/dead-letters")
    kinds = stage.operate("list_dead_letters", by_kind=True)["kinds"]
    assert page.html.rows() == [kind["fingerprint"] for kind in kinds] == [letter["fingerprint"]]
    decided = visitor.press(visitor.get(f"/dead-letters/kinds/{letter['fingerprint']}"), "/act/triage_dead_letters")
    assert "3 changed" in decided.text
    assert {row["status"] for row in stage.operate("list_dead_letters")["dead_letters"]} == {"investigating"}


def test_kind_is_ignored_for_a_time_and_returns_as_a_regression(stage: Stage, visitor: Visitor) -> None:
    path = f"/dead-letters/kinds/{fail(stage)[1]['fingerprint']}"
    page = visitor.press(visitor.get(path), "/act/triage_dead_letters", "ignore_until", ignore_until="2d")
    assert f"New ones are ignored until {NOON + timedelta(days=2):%Y-%m-%d %H:%M}" in page.text
    visitor.press(page, "/act/triage_dead_letters", "decision", decision="pending")
    visitor.press(page, "/act/triage_dead_letters", "decision", decision="resolved")
    stage.db.execute("INSERT INTO signalbox.deploys (version) VALUES ('engine 2')")
    fail(stage)
    assert "It was resolved, and came back with a later deploy" in visitor.get(path).text
    assert "regression" in visitor.get("/dead-letters").text


def test_kind_is_redriven_after_a_preview(stage: Stage, visitor: Visitor) -> None:
    jobs = [fail(stage) for _ in range(3)]
    page = visitor.get(f"/dead-letters/kinds/{jobs[0][1]['fingerprint']}")
    preview = visitor.press(page, "/act/redrive", rate_per_minute="60")
    assert "3 would start again" in preview.text
    assert f"signalbox redrive --fingerprint {jobs[0][1]['fingerprint']} --rate 60" in commands(preview)
    assert stage.statuses(*(job_id for job_id, _ in jobs)) == ["failed"] * 3
    done = visitor.press(preview, "/act/redrive")
    assert "3 redriven" in done.text
    assert "failed" not in stage.statuses(*(job_id for job_id, _ in jobs))


def test_payload_is_edited_checked_and_redriven(stage: Stage, visitor: Visitor) -> None:
    job_id, letter = fail(stage)
    path = f"/dead-letters/{letter['id']}"
    edits = [form for form in visitor.get(path).html.forms if "payload" in form.fields]
    assert len(edits) == 1
    for wrong in ("{", '{"wrod": "x"}', "[]"):
        refused = visitor.post("/act/redrive", edits[0].fields | {"payload": wrong})
        assert (refused.status, wrong in refused.text) == (422, True)
    preview = visitor.post("/act/redrive", edits[0].fields | {"payload": '{"word": "complete"}'})
    assert '- "word": "fail_for_good"' in preview.text
    assert '+ "word": "complete"' in preview.text
    assert stage.status(job_id) == "failed"
    [form] = [form for form in preview.html.forms if "dry_run" not in form.fields and "payload" in form.fields]
    assert visitor.post("/act/redrive", form.fields).status == 303
    assert stage.job(job_id)["payload"]["word"] == "complete"


def test_gap_is_backfilled_in_two_presses(stage: Stage, db: psycopg.Connection, visitor: Visitor) -> None:
    db.execute(KNOWN, [NOON - HOUR])
    missed_slot(db, "poll_data", NOON - HOUR)
    page = visitor.get("/timetable?task=poll_data", at=NOON - HOUR)
    cells = {given["value"]: given["class"] for _, given in page.html.elements if given.get("name") == "cell"}
    [gap] = [value for value, kind in cells.items() if kind == "cell missed"]
    plan = visitor.get(f"/timetable?task=poll_data&cell={gap}")
    assert "1 would run" in plan.text
    made = visitor.press(plan, "/act/create_backfill")
    [backfill] = stage.operate("list_backfills")["backfills"]
    assert (backfill["id"] in made.text, backfill["requested_by"]) == (True, "jo")


def test_overview_has_the_figures_of_the_command_line(stage: Stage, visitor: Visitor) -> None:
    fail(stage)
    stage.work(*(stage.submit("obey", payload={"word": "complete"}) for _ in range(2)))
    stage.submit("do_nothing")
    now = datetime.now(UTC)
    page, figures = visitor.get("/", at=now), stage.operate("show_statistics", now)
    assert (figures["completed"], figures["failed"]) == (2, 1)
    assert f"Completed 2 Attempts failed 1 Success {100 * (1 - figures['failure_rate']):.4g} %" in page.text
    for lane in figures["by_lane"]:
        assert f"{lane['lane']} {lane['waiting']} {lane['running']}" in page.text
    assert stage.operate("show_health", now)["status"] in page.text


def test_timetable_has_the_slots_of_the_command_line(stage: Stage, db: psycopg.Connection, visitor: Visitor) -> None:
    db.execute(KNOWN, [NOON - 5 * HOUR])
    for quarter in range(8):
        run = (succeeded_run, missed_slot, failed_run)[quarter % 3]
        run(db, "poll_data", NOON - quarter * HOUR / 4)
    page = visitor.get("/timetable?task=poll_data")
    cells = [given for _, given in page.html.elements if given.get("name") == "cell"]
    [task] = stage.operate("show_slots", NOON, task="poll_data")["tasks"]
    shown = {given["value"].split()[1]: given["class"].removeprefix("cell ") for given in cells}
    assert shown == {slot["slot"][:16]: slot["status"] for slot in task["slots"]}
    assert {"succeeded", "missed", "failed"} <= set(shown.values())


def test_next_gap_is_found_months_back(stage: Stage, db: psycopg.Connection, visitor: Visitor) -> None:
    long_ago = NOON - 80 * 24 * HOUR
    db.execute(KNOWN, [NOON])
    failed_run(db, "poll_data", long_ago)
    succeeded_run(db, "poll_data", NOON - HOUR)
    assert stage.operate("find_gap", task="poll_data")["gap"]["slot"] == long_ago.isoformat()
    page = visitor.get("/timetable?task=poll_data&gap_before=" + NOON.strftime("%Y-%m-%dT%H:%M:%SZ"))
    assert f"poll_data failed at {long_ago:%Y-%m-%d %H:%M} UTC." in page.text
    assert stage.operate("find_gap", task="poll_data", before=long_ago.isoformat())["gap"] is None


def test_schedule_is_saved_after_its_next_runs_were_shown(stage: Stage, visitor: Visitor) -> None:
    filled = {"name": "night", "job_type": "do_nothing", "cron": "15 2 * * *", "timezone": "Europe/Berlin"}
    preview = visitor.press(visitor.get("/schedules"), "/act/create_schedule", "_form", **filled)
    assert len(re.findall(r"\d\d:15 Europe/Berlin", preview.text)) == 10
    assert stage.operate("list_schedules")["schedules"] == []
    visitor.press(preview, "/act/create_schedule")
    [made] = stage.operate("list_schedules")["schedules"]
    assert made["in_words"] in visitor.get("/schedules").text
    wrong = visitor.press(visitor.get("/schedules"), "/act/create_schedule", "_form", **filled | {"cron": "x"})
    assert (wrong.status, "cron 'x' does not have five fields" in wrong.text) == (422, True)


def test_cap_is_set_and_lifted(stage: Stage, visitor: Visitor) -> None:
    page = visitor.press(visitor.get("/caps"), "/act/set_cap", kind="tenant", key="acme", max_running="5")
    assert stage.operate("list_controls")["controls"][0]["max_running"] == 5
    visitor.press(page, "/act/set_cap")
    assert stage.operate("list_controls")["controls"] == []


PAGES = [
    "/?hours=3",
    "/timetable?task=prune_history&span=6h",
    "/timetable?task=prune_history&from=2026-03-09T00:00:00Z&to=2026-03-10T00:00:00Z",
    "/jobs?status=failed&tag=a+b&since=2h",
    "/jobs/JOB",
    "/dead-letters",
    "/dead-letters/kinds/KIND",
    "/dead-letters/LETTER",
    "/backfills?status=running",
    "/schedules",
    "/caps",
]


@pytest.mark.parametrize("path", PAGES)
def test_commands_of_a_page_are_ones_that_work(stage: Stage, visitor: Visitor, path: str) -> None:
    job_id, letter = fail(stage)
    for word, value in {"JOB": job_id, "KIND": letter["fingerprint"], "LETTER": letter["id"]}.items():
        path = path.replace(word, str(value))
    lines = commands(visitor.get(path))
    assert len(lines) >= 2
    client = client_of(stage)
    for line in lines:
        words = shlex.split(line)
        if words[0] == "signalbox":
            build_parser().parse_args(words[1:])
            continue
        target = next(word for word in words if word.startswith("$SIGNALBOX_API")).removeprefix("$SIGNALBOX_API")
        body = words[words.index("-d") + 1] if "-d" in words else None
        answer = client(words[words.index("-X") + 1] if "-X" in words else "GET", target, body)
        assert answer.status < 300, answer.body


@pytest.mark.parametrize("path", ["/", "/timetable", "/jobs", "/dead-letters", "/backfills", "/schedules", "/caps"])
def test_page_is_sent_again_only_when_it_has_changed(stage: Stage, visitor: Visitor, path: str) -> None:
    first = visitor.get(path, at=NOON + timedelta(seconds=1))
    again = visitor.get(path, {"if-none-match": first.headers["etag"]}, at=NOON + timedelta(seconds=3))
    assert (again.status, again.body) == (304, "")


def test_page_of_a_job_that_waits_changes_with_the_job_alone(stage: Stage, visitor: Visitor) -> None:
    job_id = stage.submit("do_nothing", delay=HOUR)
    tag = visitor.get(f"/jobs/{job_id}").headers["etag"]
    assert visitor.get(f"/jobs/{job_id}", {"if-none-match": tag}).status == 304
    stage.operate("pause", ids=[job_id], by="jo")
    assert visitor.get(f"/jobs/{job_id}", {"if-none-match": tag}).status == 200


def test_tenant_sees_its_own_jobs_alone(stage: Stage) -> None:
    own, other = (fail(stage, tenant=tenant) for tenant in ("acme", "other"))
    acme = Visitor(stage).log_in(tenant="acme")
    assert acme.get("/jobs").html.rows() == [own[0]]
    assert [acme.get(f"/jobs/{job_id}").status for job_id, _ in (own, other)] == [200, 404]
    assert [acme.get(f"/dead-letters/{letter['id']}").status for _, letter in (own, other)] == [200, 404]
    assert acme.get("/").headers["location"] == "/jobs"
    assert [text for text in ("Caps", "Timetable") if text in acme.get("/jobs").text] == []
    fields = acme.get("/jobs").html.forms[0].fields
    answer = acme.post("/act/cancel_jobs", fields | {f"id.{other[0]}": "on", "_next": "/jobs"})
    assert answer.status == 404
    assert acme.press(acme.get(f"/jobs/{own[0]}"), "/act/redrive").status == 200


def test_viewer_is_shown_no_buttons(stage: Stage) -> None:
    job_id, letter = fail(stage)
    viewer = Visitor(stage).log_in("viewer")
    for path in ("/jobs", f"/jobs/{job_id}", f"/dead-letters/{letter['id']}", "/caps", "/schedules", "/timetable"):
        assert "/act/" not in viewer.get(path).body


@pytest.mark.parametrize(
    "back", ["/", "/jobs", "/schedules", "/dead-letters", "/caps", "/timetable?task=none", "/nothing"]
)
def test_preview_that_a_page_does_not_show_is_no_error_of_ours(stage: Stage, visitor: Visitor, back: str) -> None:
    stage.submit("do_nothing")
    fields = {**visitor.get("/jobs").html.forms[0].fields, "dry_run": "true", "_next": back, "job_type": "do_nothing"}
    for action in ("redrive", "pause", "triage_dead_letters", "create_schedule", "create_backfill"):
        answer = visitor.post(f"/act/{action}", fields | {"decision": "ignored", "name": "x", "cron": "0 0 * * *"})
        assert answer.status in (200, 404, 422), answer.text
