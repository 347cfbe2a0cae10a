"""`signalbox`'s commands about jobs work on a real stack, from the submit to the result, and explain mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.support.command_line import Signalbox, detached_stack, refusal

NOBODY = "00000000-0000-7000-8000-000000000000"
SWEEP = '{"task": "sweep_runs"}'
UNFIT = '{"task": "sweep_runs", "params": {"no": 1}}'  # it takes no params: such a job fails for good


@pytest.fixture(scope="session")
def announced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Run a stack with a stopped clock, so that only commands dispatch."""
    with detached_stack(tmp_path_factory, "--parameter", "ForecastsPack=off") as announced:
        yield announced


@pytest.fixture
def signalbox(announced: dict[str, Any]) -> Signalbox:
    return Signalbox({"SIGNALBOX_HOME": announced["home"]})


@pytest.fixture
def db(announced: dict[str, Any]) -> Iterator[psycopg.Connection]:
    with psycopg.connect(announced["database"], autocommit=True) as connection:
        yield connection


@pytest.fixture
def tag() -> str:
    """Make a tag of the test's own, since tests share a stack."""
    return f"tag-{uuid4().hex[:8]}"


def submit(signalbox: Signalbox, *words: str) -> str:
    """Submit a job that waits an hour; return its id."""
    ran = signalbox("submit", "run_task", "--payload", SWEEP, "--delay", "1h", "--json", *words)
    job_id: str = ran.json["jobs"][0]["id"]
    return job_id


def status(signalbox: Signalbox, job_id: str) -> str:
    return str(signalbox("job", job_id, "--json").json["job"]["status"])


# ---- submit


def test_submitted_job_runs_and_its_page_shows_the_result(signalbox: Signalbox) -> None:
    ran = signalbox("submit", "run_task", "--payload", SWEEP, "--name", "by hand", "--wait")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0].endswith("of run_task is completed")
    assert "  name      by hand" in lines
    [attempt] = [line for line in lines if "attempt 1" in line]
    assert "completed" in attempt
    assert "waited" in ran.out


def test_a_job_that_fails_ends_the_wait_with_an_exit_code(signalbox: Signalbox) -> None:
    ran = signalbox("submit", "run_task", "--payload", UNFIT, "--wait")
    assert ran.code == 1
    assert "of run_task is failed" in ran.out
    assert "signalbox dead-letters show" in ran.out


def test_a_job_is_submitted_once_by_its_key(signalbox: Signalbox, tag: str) -> None:
    first = submit(signalbox, "--key", tag)
    again = signalbox("submit", "run_task", "--payload", SWEEP, "--key", tag)
    assert again.out == f"job {first} of run_task is pending in lane normal, submitted before with the same key\n"


def test_many_jobs_come_from_a_file_once_they_are_checked(signalbox: Signalbox, tag: str, tmp_path: Path) -> None:
    job = {"job_type": "run_task", "payload": {"task": "sweep_runs"}, "delay_seconds": 3600, "tags": [tag]}
    path = tmp_path / "jobs.jsonl"
    path.write_text("\n".join(json.dumps(job | more) for more in ({"ref": "a"}, {"depends_on": ["a"]}, {})))
    assert signalbox("submit", "--file", str(path), "--dry-run").out == "3 to submit\n"
    assert signalbox("jobs", "--tag", tag, "--json").json["jobs"] == []
    assert "add --yes" in refusal(signalbox, "submit", "--file", str(path), code=2)
    ran = signalbox("submit", "--file", str(path), "--yes")
    assert ran.out == "submitted 3 jobs; 0 had been submitted before\n"
    assert len(signalbox("jobs", "--tag", tag, "--json").json["jobs"]) == 3


def test_unknown_type_in_a_file_is_named_with_its_line(signalbox: Signalbox, tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text(f'{{"job_type": "run_task", "payload": {SWEEP}}}\n\n{{"job_type": "run_tusk"}}\n')
    said = refusal(signalbox, "submit", "--file", str(path), "--dry-run", code=2)
    assert f"--file {path} line 3: JobTypeUnknown" in said
    assert "did you mean 'run_task'?" in said


def test_jobs_come_from_the_input_too(signalbox: Signalbox, tag: str) -> None:
    jobs = [{"job_type": "run_task", "payload": {"task": "sweep_runs"}, "delay_seconds": 60, "tags": [tag]}] * 2
    answer = signalbox("submit", "--file", "-", "--yes", "--json", given=json.dumps(jobs)).json
    assert (len(answer["jobs"]), answer["created"]) == (2, 2)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "name the TYPE of the job"),
        (["run_tusk"], 2, "JobTypeUnknown: job type 'run_tusk' is not registered; did you mean 'run_task'?"),
        (["run_task", "--payload", '{"task": "swep_runs"}'], 2, "did you mean 'sweep_runs'?"),
        (["run_task"], 1, "field 'task' is missing"),
        (["run_task", "--payload", SWEEP, "--priority", "11"], 1, "priority 11 is not between 1 (first) and 10"),
        (["run_task", "--payload", SWEEP, "--after", NOBODY], 1, NOBODY),
        (["--file", "README.md", "--yes"], 2, "--file README.md line 1 is not JSON"),
        (["--file", "none.json", "--yes"], 2, "none.json can't be read"),
        (["--file", "none.json"], 2, "none.json can't be read"),
        (["--file", "events/list_jobs.json", "--yes"], 2, "is not JSON"),
        (["run_task", "--file", "x", "--yes"], 2, "--file holds whole jobs"),
    ],
)
def test_submit_says_in_a_line_what_is_wrong(signalbox: Signalbox, words: list[str], code: int, said: str) -> None:
    assert said in refusal(signalbox, "submit", *words, code=code)


# ---- jobs and job


def test_jobs_are_listed_by_filters_and_page_by_page(signalbox: Signalbox, tag: str) -> None:
    ids = [submit(signalbox, "--tag", tag, "--tenant", "acme") for _ in range(3)]
    ran = signalbox("jobs", "--tag", tag, "--limit", "2")
    heading, *rows, last = ran.out.splitlines()
    assert heading.split() == ["id", "type", "status", "lane", "tenant", "attempts", "took", "created"]
    assert [row.split()[0] for row in rows if row.startswith("0")] == [id_[:18] for id_ in ids[:0:-1]]
    assert last.endswith(f"--before {ids[1]} the next page")
    [first] = signalbox("jobs", "--tag", tag, "--before", ids[1], "--json").json["jobs"]
    assert (first["id"], first["status"], first["tenant"]) == (ids[0], "pending", "acme")
    assert len(signalbox("jobs", "--tag", tag, "--all", "--json").json["jobs"]) == 3
    assert signalbox("jobs", "--tag", tag, "--status", "failed").out == "no job matches\n"


def test_what_is_not_there_is_said_in_a_line(signalbox: Signalbox) -> None:
    assert f"JobUnknown: no job has the id {NOBODY}" in refusal(signalbox, "job", NOBODY)
    assert "JobTypeUnknown" in refusal(signalbox, "jobs", "--type", "run_tasks", code=2)
    assert "name the ID of a job, or give a filter" in refusal(signalbox, "cancel", code=2)
    assert "not both" in refusal(signalbox, "cancel", NOBODY, "--type", "run_task", code=2)


# ---- orders


def test_a_job_is_cancelled_and_then_is_refused(signalbox: Signalbox) -> None:
    job_id = submit(signalbox)
    ran = signalbox("cancel", job_id, "--reason", "not needed")
    assert (ran.code, ran.out) == (0, "cancelled 1\n")
    page = signalbox("job", job_id).out
    assert "is cancelled" in page
    assert "not needed" in page
    assert f"TransitionRefused: job {job_id} is cancelled" in refusal(signalbox, "cancel", job_id)


def test_ended_jobs_among_several_are_reported(signalbox: Signalbox) -> None:
    over, waits = submit(signalbox), submit(signalbox)
    signalbox("cancel", over)
    ran = signalbox("cancel", over, waits)
    assert (ran.code, ran.out, ran.err) == (1, "cancelled 1\n", f"job {over} is cancelled: unchanged\n")


def test_an_order_in_bulk_is_shown_first_and_asked_for(signalbox: Signalbox, tag: str) -> None:
    ids = [submit(signalbox, "--tag", tag) for _ in range(12)]
    looked = signalbox("cancel", "--tag", tag, "--dry-run")
    assert looked.code == 0
    assert looked.out.splitlines()[-2:] == ["the newest 10 of 12", "to cancel: 12 (12 pending)"]
    assert signalbox("cancel", "--tag", tag, "--dry-run", "--json").json["dry_run"]["counts"] == {"pending": 12}
    assert "no terminal to prompt on; add --yes" in refusal(signalbox, "cancel", "--tag", tag, code=2)
    assert status(signalbox, ids[0]) == "pending"
    done = signalbox("cancel", "--tag", tag, "--yes", "--json").json
    assert (done["cancelled"], done["requested"], done["more"]) == (12, 0, False)
    kept = signalbox("bulk-actions", "show", done["bulk_action"][:23])
    assert kept.out.startswith(
        f"bulk action {done['bulk_action']} (cancel) is completed\n  filter    tag {tag}, until "
    )
    assert "12 cancelled" in kept.out
    assert tag in signalbox("bulk-actions").out
    assert "there is nothing left to cancel" in refusal(signalbox, "bulk-actions", "cancel", done["bulk_action"])
    nothing = signalbox("cancel", "--tag", tag, "--yes")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err.endswith("nothing was done: no matching job is pending or queued or paused or running\n")


def test_a_job_is_tried_now(signalbox: Signalbox) -> None:
    job_id = submit(signalbox)
    ran = signalbox("retry", job_id)
    assert (ran.code, ran.out) == (0, "1 due now\n")
    signalbox("submit", "run_task", "--payload", SWEEP, "--after", job_id, "--wait")
    assert status(signalbox, job_id) == "completed"
    assert "submit another job" in refusal(signalbox, "retry", job_id)


def test_jobs_are_paused_and_resumed(signalbox: Signalbox, tag: str) -> None:
    job_id = submit(signalbox, "--tag", tag)
    assert signalbox("pause", "jobs", job_id, "--reason", "wait").out == "paused 1\n"
    assert status(signalbox, job_id) == "paused"
    assert signalbox("resume", "jobs", "--tag", tag, "--yes").out == "1 job released\n"
    assert status(signalbox, job_id) == "pending"


def test_a_key_is_paused_capped_and_resumed(signalbox: Signalbox, tag: str) -> None:
    assert signalbox("pause", "key", tag, "--reason", "no toner").out == (f"key {tag} is paused; it has no jobs yet\n")
    signalbox("pause", "key", tag, "--reason", "no paper")
    [row] = [line for line in signalbox("caps").out.splitlines() if tag in line]
    assert row.split()[:3] == ["key", tag, "paused"]
    assert re.search(r"by \w+ (now|\d+ s ago): no paper$", row)
    assert signalbox("caps", "set", "key", tag, "--max-running", "2", "--rate", "10/1m").out == (
        f"key {tag}: 2 at once, 10 in 60 s\n"
    )
    assert signalbox("resume", "key", tag).out == f"key {tag} is resumed; 0 jobs released\n"
    assert signalbox("caps", "clear", "key", tag).out == f"key {tag}: no cap\n"
    assert f"CapRefused: key '{tag}' is not paused" in refusal(signalbox, "resume", "key", tag)
    assert "there is no lane 'fast'" in refusal(signalbox, "pause", "lane", "fast")
    assert "name one tenant" in refusal(signalbox, "pause", "tenant", code=2)
    assert "filters choose jobs" in refusal(signalbox, "pause", "tenant", "acme", "--tag", "x", code=2)


# ---- dead letters


def test_what_failed_is_looked_through_decided_on_and_redriven(signalbox: Signalbox, tag: str) -> None:
    words = ["--payload", UNFIT, "--tenant", tag, "--json"]
    job_id = signalbox("submit", "run_task", *words).json["jobs"][0]["id"]
    signalbox("submit", "run_task", "--payload", SWEEP, "--after", job_id, "--wait")
    [letter] = signalbox("dead-letters", "--tenant", tag, "--json").json["dead_letters"]
    assert letter["original_job_id"] == job_id
    short = letter["id"][:8]
    assert short in signalbox("dead-letters").out
    kinds = signalbox("dead-letters", "--kinds", "--json").json
    assert (letter["fingerprint"] in str(kinds), kinds["more"]) == (True, 0)
    page = signalbox("dead-letters", "show", short).out
    assert f"dead letter {letter['id']} of run_task is pending" in page
    assert signalbox("dead-letters", "investigate", letter["id"]).out == "1 are investigating now\n"
    assert f"signalbox redrive {letter['id']}" in refusal(signalbox, "retry", job_id)
    looked = signalbox("redrive", "--tenant", tag, "--dry-run")
    assert looked.out.startswith("to redrive: 1\n")
    assert "add --yes" in refusal(signalbox, "redrive", "--tenant", tag, code=2)
    assert "TaskUnknown" in refusal(signalbox, "redrive", letter["id"], "--payload", '{"task": "no"}', code=2)
    done = signalbox("redrive", letter["id"], "--payload", SWEEP, "--reason", "without params", "--json").json
    assert done["redriven"] == 1
    assert status(signalbox, job_id) in ("pending", "queued", "running", "completed")
    assert "TransitionRefused" in refusal(signalbox, "redrive", letter["id"])


def test_dead_letters_in_bulk_are_asked_for(signalbox: Signalbox, tag: str) -> None:
    assert "name the ID of a dead letter" in refusal(signalbox, "dead-letters", "resolve", code=2)
    ran = signalbox("dead-letters", "resolve", "--tenant", tag, "--yes")
    assert (ran.code, ran.out) == (0, "")
    assert "no dead letter matches" in ran.err
    assert "DeadLetterUnknown" in refusal(signalbox, "dead-letters", "show", NOBODY)


def test_kind_of_failure_is_ignored_for_its_next_failures(signalbox: Signalbox, tag: str) -> None:
    def fail() -> dict[str, Any]:
        ran = signalbox("submit", "run_task", "--payload", UNFIT, "--tenant", tag, "--wait", "--json")
        job_id = json.loads(ran.out)["job"]["id"]
        found = signalbox("dead-letters", "--tenant", tag, "--everything", "--json").json["dead_letters"]
        return next(dict(letter) for letter in found if letter["original_job_id"] == job_id)

    kind = ["--fingerprint", fail()["fingerprint"]]
    ran = signalbox("dead-letters", "ignore", *kind, "--yes", "--ignore-until", "2020-01-01T00:00Z")
    assert (ran.code, "is past" in ran.err) == (1, True)
    assert "go with" in refusal(signalbox, "dead-letters", "resolve", *kind, "--yes", "--ignore-next", "1", code=2)
    ran = signalbox("dead-letters", "ignore", *kind, "--ignore-next", "1", "--yes", "--reason", "known")
    assert ran.out.endswith("; so are the next 1 of this kind\n")
    assert fail()["status"] == "ignored"
    assert fail()["status"] == "pending"
    signalbox("dead-letters", "ignore", *kind, "--ignore-until", "2h", "--yes")
    assert "ignored until" in signalbox("dead-letters", "--kinds", "--everything").out
    signalbox("dead-letters", "reopen", *kind, "--yes")
    assert fail()["status"] == "pending"


@pytest.mark.parametrize(
    "words",
    [
        ["dead-letters", "--type", "deliver_webhok"],
        ["dead-letters", "resolve", "--type", "deliver_webhok", "--yes"],
        ["redrive", "--type", "deliver_webhok", "--yes"],
        ["cancel", "--type", "deliver_webhok", "--yes"],
    ],
)
def test_misspelt_type_is_refused_and_the_nearest_named(signalbox: Signalbox, words: list[str]) -> None:
    assert "did you mean 'deliver_webhook'?" in refusal(signalbox, *words, code=2)


@pytest.mark.parametrize("words", [["cancel"], ["job"], ["retry"], ["pause", "jobs"], ["redrive"]], ids=str)
def test_what_is_no_id_is_said_to_be_none(signalbox: Signalbox, words: list[str]) -> None:
    assert "'123' is not the id of a" in refusal(signalbox, *words, "123", code=2)


# ---- stats


def test_stats_show_health_and_numbers(signalbox: Signalbox) -> None:
    submit(signalbox)
    ran = signalbox("stats")
    assert ran.code == 0
    assert ran.out.startswith("the job plane is ")
    assert "pending" in ran.out
    answer = signalbox("stats", "--window", "1h", "--json").json
    assert answer["health"]["status"] in ("healthy", "degraded", "unhealthy")
    assert answer["statistics"]["by_status"]["pending"] >= 1
    assert "JobTypeUnknown" in refusal(signalbox, "stats", "--type", "no_type", code=2)


# ---- schedules


def test_a_schedule_is_created_listed_paused_resumed_and_deleted(signalbox: Signalbox, tag: str) -> None:
    words = ["run_task", "--cron", "15 2 * * *", "--timezone", "Europe/Berlin", "--payload", SWEEP]
    ran = signalbox("schedules", "create", tag, *words)
    assert ran.out.startswith(f"schedule {tag} is created, due "), ran.err
    [row] = [line for line in signalbox("schedules").out.splitlines() if line.startswith(tag)]
    assert "15 2 * * * Europe/Berlin" in row
    assert signalbox("pause", "schedule", tag, "--reason", "month end").out == f"schedule {tag} is paused\n"
    signalbox("pause", "schedule", tag, "--reason", "audit")
    assert re.search(r"paused by \w+ (now|\d+ s ago): audit", signalbox("schedules").out)
    assert signalbox("schedules", "resume", tag).out == f"schedule {tag} is resumed\n"
    assert signalbox("schedules", "delete", tag).out == f"schedule {tag} is deleted\n"
    assert tag not in signalbox("schedules").out
    assert tag in refusal(signalbox, "schedules", "pause", tag)
    assert "say when: --cron, --every or --at" in refusal(signalbox, "schedules", "create", tag, "run_task", code=2)
