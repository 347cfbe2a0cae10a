"""Jobs, dead letters and figures become text, and a file of jobs is cut into calls: all of it pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from signalbox_cli.commands.redrive import preview_lines
from signalbox_cli.errors import FunctionFailed, UsageRefused
from signalbox_cli.options import bulk_options, job_file
from signalbox_cli.views.dead_letter_page import letter_page
from signalbox_cli.views.dead_letter_table import COLUMNS, kind_row, letter_row
from signalbox_cli.views.job_page import job_page, timeline
from signalbox_cli.views.job_table import job_table, notes_of
from signalbox_cli.views.stats_page import health_lines, stats_lines
from signalbox_cli.views.table import table
from signalbox_cli.views.times import show_instant

CLOCK = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
ID = "0195806a-1fe1-7000-8000-00000000000a"
ROW: dict[str, Any] = {
    "id": ID,
    "job_type": "deliver_webhook",
    "job_name": None,
    "status": "pending",
    "lane": "normal",
    "tenant": None,
    "attempts": 1,
    "max_attempts": 5,
    "duration_ms": None,
    "created_at": "2026-03-10T11:00:00+00:00",
    "scheduled_for": None,
    "unmet_dependencies": 0,
    "paused_by": None,
    "progress_percent": 0,
    "progress_message": None,
    "health_status": None,
    "silent_seconds": None,
    "heartbeat_at": None,
    "throttles": 0,
    "cancel_requested_at": None,
    "error_type": None,
    "error_message": None,
}
JOB: dict[str, Any] = ROW | {
    "priority": 5,
    "job_category": "standard",
    "subject_id": "d-7",
    "correlation_id": None,
    "idempotency_key": None,
    "cap_key": None,
    "tags": ["red"],
    "timeout_ms": 45_000,
    "error_details": None,
    "parent_job_id": None,
    "payload": {"url": "https://example.com"},
    "result": None,
    "output_files": None,
    "created_by": "jo",
    "completed_at": None,
}
ATTEMPT: dict[str, Any] = {
    "attempt_number": 1,
    "status": "failed",
    "worker_id": "request-1/ab",
    "queued_at": "2026-03-10T11:00:00+00:00",
    "started_at": "2026-03-10T11:00:01.5+00:00",
    "duration_ms": 250,
    "error_code": "Transient",
    "error_message": "503",
}
LETTER: dict[str, Any] = {
    "id": "l-1",
    "failure_reason": "exhausted",
    "last_failed_at": "2026-03-10T11:30:00+00:00",
    "status": "pending",
}


def found(**more: Any) -> dict[str, Any]:
    lists = ("executions", "depends_on", "dependents", "children", "files", "orders")
    nothing: dict[str, Any] = {name: [] for name in lists}
    return {"job": JOB, "group": None, "dead_letter": None, "schedule": None, "waits": None} | nothing | more


def page(**more: Any) -> str:
    return "\n".join(line.plain for line in job_page(found(**more), 120, CLOCK))


@pytest.mark.parametrize(
    ("fields", "notes"),
    [
        ({}, ["is due"]),
        ({"scheduled_for": "2026-03-10T13:00:00+00:00"}, ["not before 2026-03-10T13:00Z"]),
        ({"unmet_dependencies": 2}, ["waits for 2 others"]),
        ({"status": "paused"}, ["with what it belongs to"]),
        ({"status": "paused", "paused_by": "jo"}, ["by jo"]),
        ({"status": "running", "progress_percent": 40, "health_status": "HEALTHY"}, ["40 %"]),
        ({"status": "running", "health_status": "STALE", "cancel_requested_at": "x"}, ["STALE", "is asked to stop"]),
        ({"status": "running", "health_status": "HEALTHY", "silent_seconds": 62}, ["silent for 1 min 2 s"]),
        ({"status": "failed", "error_type": "Permanent", "error_message": "never"}, ["Permanent: never"]),
        ({"status": "completed", "error_type": "Transient", "error_message": "503"}, []),
        ({"status": "queued", "job_name": "nightly"}, ["nightly"]),
    ],
)
def test_row_notes_what_its_state_does_not_show(fields: dict[str, Any], notes: list[str]) -> None:
    assert notes_of(ROW | fields, CLOCK) == notes


def test_a_column_that_says_nothing_is_left_out() -> None:
    assert "tenant" not in job_table([ROW], 120, CLOCK)[0].plain
    assert "tenant" in job_table([ROW | {"tenant": "acme"}], 120, CLOCK)[0].plain


def test_completed_jobs_page_shows_its_result_and_no_progress() -> None:
    told = {"progress_percent": 100, "progress_message": "3738 rows"}
    assert "3738 rows" not in page(job=JOB | told | {"status": "completed", "result": {"rows": 5000}})
    assert "3738 rows" in page(job=JOB | told | {"status": "failed"})


def test_a_page_says_what_is_known_and_is_silent_about_the_rest() -> None:
    text = page()
    assert text.startswith(f"job {ID} of deliver_webhook is pending\n")
    assert "  subject   d-7" in text
    assert '  payload   {"url": "https://example.com"}' in text
    for absent in ("tenant", "group", "result", "None", "waits for", "took  "):
        assert f"  {absent}" not in text, absent


def test_timeline_is_ordered_by_time() -> None:
    order = {"at": "2026-03-10T11:10:00+00:00", "actor": "jo", "action": "job.pause", "detail": {"reason": "wait"}}
    second = ATTEMPT | {"attempt_number": 2, "started_at": "2026-03-10T11:20:00+00:00", "queued_at": None}
    events = timeline(found(executions=[second, ATTEMPT], orders=[order], dead_letter=LETTER))
    told = [event.what for event in events]
    assert told == ["submitted", "attempt 1", "job.pause", "attempt 2", "dead letter"]
    assert (events[1].status, events[1].took, events[1].note) == ("failed", "250 ms", "Transient: 503")
    assert events[2].note == "by jo: wait"


def test_successful_attempt_says_how_long_it_waited_and_where_it_ran() -> None:
    well = ATTEMPT | {"status": "completed", "error_code": None}
    assert timeline(found(executions=[well]))[1].note == "waited 1.5 s, on request-1/ab"


def test_what_stands_around_a_job_is_listed() -> None:
    parent = {"id": "p", "job_type": "x", "status": "running", "dependency_type": "success", "on_failure": "fail"}
    text = page(depends_on=[parent], children=[{"id": "c", "job_type": "y", "status": "queued"}])
    assert "waits for p of x: running, success, else fail" in text
    assert "has submitted c of y: queued" in text


def test_a_group_and_a_long_payload_fit_into_a_line_each() -> None:
    group = {"id": "g", "total": 10, "completed": 3, "failed": 1, "cancelled": 0}
    text = page(group=group, job=JOB | {"payload": {"text": "x" * 1000}})
    assert "g: 4 of 10 have ended, 1 failed" in text
    assert "… (--json shows all)" in text


def test_a_dead_letter_shows_its_attempts() -> None:
    letter: dict[str, Any] = {
        **LETTER,
        "job_type": "deliver_webhook",
        "original_job_id": ID,
        "job_status": "failed",
        "error_type": "Transient",
        "final_error_message": "503",
        "severity": "warning",
        "fingerprint": "f",
        "tenant": None,
        "total_attempts": 5,
        "redrives": 2,
        "resolution_notes": None,
        "payload": {},
        "audit": [{"at": CLOCK.isoformat(), "action": "triage", "actor": "jo", "detail": None}],
    }
    for history in ([ATTEMPT], []):
        text = "\n".join(line.plain for line in letter_page(letter | {"execution_history": history}, 120, CLOCK))
        assert text.startswith("dead letter l-1 of deliver_webhook is pending")
        assert f"{ID}, now failed" in text
        assert ("Transient: 503" in text.split("kind")[1]) == bool(history)
        assert "version" not in text
        assert text.endswith("triage by jo")
    deployed = {"version": "engine 7", "regressed_at": CLOCK.isoformat(), "execution_history": []}
    lines = [line.plain for line in letter_page(letter | deployed, 120, CLOCK)]
    assert [line for line in lines if "engine 7" in line or "regressed" in line] == [
        "  version    engine 7",
        f"  regressed  {show_instant(CLOCK)}",
    ]


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ({}, "Transient: 503"),
        ({"regressed_at": "2026-01-31T06:00:00+00:00"}, "regressed 2026-01-31T06:00Z; Transient: 503"),
        ({"ignored_until": "2026-01-31T06:00:00+00:00"}, "ignored until 2026-01-31T06:00Z; Transient: 503"),
        ({"ignored_next_left": 4000, "error_type": None}, "the next 4,000 are ignored"),
    ],
)
def test_kind_of_failure_says_that_it_regressed_or_is_ignored(known: dict[str, Any], told: str) -> None:
    kind = {"fingerprint": "f", "job_type": "x", "total": 1, "pending": 1, "investigating": 0, "severity": "warning"}
    marks = {"regressed_at": None, "ignored_until": None, "ignored_next_left": None}
    error = {"last_seen": CLOCK.isoformat(), "error_type": "Transient", "error_message": "503"}
    assert kind_row(kind | marks | error | known, CLOCK).note == told


def test_figures_have_units_and_no_data_shows_nothing() -> None:
    times = dict.fromkeys(("average_ms", "p50_ms", "p95_ms", "p99_ms", "most_ms", "p95_wait_ms"))
    empty: dict[str, Any] = {
        "job_type": None,
        "tenant": None,
        "since": "2026-03-09T12:00:00+00:00",
        "until": "2026-03-10T12:00:05+00:00",
        "throttled": 0,
        "silent": 0,
        "longest_silent_seconds": None,
        "by_status": {"pending": 0},
        "throughput_per_minute": 0.0,
        "completion_rate": None,
        "dlq_rate": None,
        "waiting": 0,
        "oldest_waiting_seconds": None,
        "by_type": [],
        **times,
    }
    text = "\n".join(line.plain for line in stats_lines(empty, 120))
    assert text == (
        "\njobs at 2026-03-10T12:00:05Z: none\n  ended jobs are those since 2026-03-09T12:00Z\n  throughput: 0 jobs/min"
    )
    some = empty | {"by_status": {"running": 2}, "completion_rate": 0.995, "waiting": 3, "oldest_waiting_seconds": 90}
    some |= {"silent": 1, "longest_silent_seconds": 62, "throttled": 2}
    counts = {"completed": 1000, "failed": 1, "timed_out": 1, "failed_jobs": 0, "running": 2, "waiting": 3}
    some["by_type"] = [{"job_type": "run_task", **counts, **times, "p95_ms": 1250.0}]
    some["by_tenant"] = [
        {"tenant": "acme", "waiting": 7, "running": 1, "open_dead_letters": 0,
         "waiting_since": "2026-03-10T12:00:00+00:00"}
    ]  # fmt: skip
    text = "\n".join(line.plain for line in stats_lines(some, 80))
    assert "99.5% completed" in text
    assert "3 jobs waiting (oldest 1 min 30 s)" in text
    assert "1 running job silent for up to 1 min 2 s" in text
    assert "2 attempts rate-limited" in text
    assert ["run_task", "1,000", "0", "2", "3", "2", "1.2", "s"] in [line.split() for line in text.splitlines()]
    assert text.splitlines()[-1].split() == ["acme", "7", "5.0", "s", "1", "0"]
    assert max(map(len, text.splitlines())) <= 80


def test_health_names_its_alerts_and_what_to_do() -> None:
    alert = {"name": "slow_jobs", "severity": "warning", "message": "slow", "advice": "cut their work"}
    health = {"status": "degraded", "stale_jobs": 1, "open_dead_letters": 0, "failed_last_hour": 0, "alerts": [alert]}
    lines = [line.plain for line in health_lines(health)]
    assert lines[0].startswith("the job plane is degraded: 1 stale job")
    assert lines[1:] == ["  warning  slow_jobs: slow", "      cut their work"]


def test_a_redrive_is_previewed_with_what_can_not_be() -> None:
    refused = {"count": 1, "sample": [{"id": "b", "reason": "its job is running"}]}
    sample = [{"id": "a", "job_type": "x", "error": None}]
    lines = preview_lines(
        {"count": 3, "sample": sample, "refused": refused, "last_at": "2026-03-10T12:02:00+00:00", "more": False}
    )
    assert lines == [
        "to redrive: 3, the last one at 2026-03-10T12:02Z",
        "  a  x",
        "  and 2 more",
        "1 can't be redriven:",
        "  b  its job is running",
    ]


def test_a_file_of_jobs_is_an_array_or_an_object_a_line(tmp_path: Path) -> None:
    one, other = {"job_type": "a"}, {"job_type": "b", "payload": {}}
    (tmp_path / "array").write_text(json.dumps([one, other], indent=1))
    (tmp_path / "lines").write_text(f"{json.dumps(one)}\n\n{json.dumps(other)}\n")
    for name in ("array", "lines"):
        assert job_file.read_jobs(str(tmp_path / name)).jobs == [one, other]


def test_refusal_of_one_job_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    path.write_text('{"job_type": "a"}\n\n{"job_type": "b"}\n{"job_type": "c"}\n')
    file = job_file.read_jobs(str(path))
    unknown = FunctionFailed("JobTypeUnknown: job 2 of 2: job type 'c' is not registered", "JobTypeUnknown")
    refused = FunctionFailed("PayloadRefused: field 'jobs.1.delay' is not known", "PayloadRefused")
    away = FunctionFailed("DatabaseUnavailable: it is away", "DatabaseUnavailable")
    for error in (unknown, refused):
        located = file.located(error, first=1)  # of a second call
        assert (str(located), located.kind) == (f"--file {path} line 4: {error}", error.kind)
    assert file.located(away, first=1) is away
    path.write_text('[{"job_type": "a"}, {"job_type": "b"}, {"job_type": "c"}]')
    assert str(job_file.read_jobs(str(path)).located(unknown, first=1)).startswith(f"--file {path} job 3: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "contains no job"),
        ("[]", "contains no job"),
        ('{"job_type": "a"}\n[1]\n{', "line 2 holds a value that is not a job"),
        ('{"job_type": "a"}\n{', "line 2 is not JSON"),
        ('[{"payload": {}}]', "holds a value that is not a job: expected an object with a job_type"),
        ('[{"job_type": "a"', "is not JSON"),
    ],
)
def test_a_file_that_holds_no_jobs_is_refused_with_the_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "jobs"
    path.write_text(text)
    with pytest.raises(UsageRefused, match=words):
        job_file.read_jobs(str(path))


def test_jobs_are_cut_into_calls_that_lambda_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_file, "MOST_JOBS", 3)
    jobs = [{"job_type": "a", "name": str(number)} for number in range(7)]
    assert [len(part) for part in job_file.calls(jobs)] == [3, 3, 1]
    assert [job for part in job_file.calls(jobs) for job in part] == jobs
    monkeypatch.setattr(job_file, "MOST_BYTES", 70)
    assert all(len(json.dumps(part)) <= 70 + 2 for part in job_file.calls(jobs))


def test_jobs_that_name_each_other_are_not_torn_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_file, "MOST_JOBS", 2)
    jobs: list[dict[str, Any]] = [
        {"job_type": "a", "ref": "x"},
        {"job_type": "a"},
        {"job_type": "a", "depends_on": ["x"]},
    ]
    assert len(job_file.calls(jobs[:2])) == 1
    with pytest.raises(UsageRefused, match="too many for one call"):
        job_file.calls(jobs)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"more": True, "bulk_action": "b-1"}, "the rest follows; `signalbox bulk-actions show b-1`"),
        ({"left": 7, "more": False, "bulk_action": "b-1"}, "the rest follows"),
        ({"more": True}, "some are left: repeat the command"),
        ({"left": 7}, "some are left: repeat the command"),
        ({"more": False, "left": 0, "bulk_action": "b-1"}, ""),
    ],
)
def test_what_becomes_of_the_rest_is_said(
    answer: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bulk_options.say_the_rest(answer)
    told = capsys.readouterr().err
    assert words in told if words else told == ""


def test_lists_fit_eighty_columns() -> None:
    job = ROW | {"job_type": "deliver_notification", "status": "completed", "duration_ms": 1250, "tenant": None}
    letter = LETTER | {"id": ID, "job_type": "deliver_notification", "severity": "critical", "total_attempts": 12}
    letters = [letter_row(letter | {"status": "investigating", "error_type": None}, CLOCK)]
    lines = [*job_table([job], 80, CLOCK), *table(COLUMNS, letters, 80)]
    assert max(len(line.plain) for line in lines) <= 80
    assert "attempts" in job_table([job], 120, CLOCK)[0].plain


@pytest.mark.parametrize(
    ("counts", "more", "lines"),
    [
        ({"pending": 3}, False, ["to cancel: 3 (3 pending)"]),
        ({"pending": 10_000}, False, ["to cancel: 10,000 (10,000 pending)"]),
        ({"pending": 10_000, "queued": 5}, True, ["to cancel: more than 10,005"]),
        (
            {"failed": 500, "completed": 9_500, "queued": 5},
            True,
            ["to cancel: 5 (5 queued)", "unchanged: more than 10,000"],
        ),
        ({"completed": 4, "queued": 10_000}, True, ["to cancel: more than 10,000", "unchanged: 4 (4 completed)"]),
    ],
)
def test_preview_says_what_it_has_not_counted(
    capsys: pytest.CaptureFixture[str], counts: dict[str, int], more: bool, lines: list[str]
) -> None:
    command = bulk_options.BulkCommand("cancel_jobs", "cancel", ("pending", "queued"), str)
    bulk_options.show_preview(command, {"counts": counts, "more": more, "sample": []}, to_stderr=False)
    assert capsys.readouterr().out.splitlines()[1:] == lines
