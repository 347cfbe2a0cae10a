"""Log lines of functions become readable lines."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from signalbox_cli.views.log_line import LogRecord, show_record

AT = datetime(2026, 11, 18, 12, 3, 22, 405_000, tzinfo=UTC)
EVENT = {
    "level": "INFO",
    "location": "_record:195",
    "message": "slot.caught_up",
    "timestamp": "2026-11-18 12:03:22,405+0000",
    "service": "signalbox",
    "task": "sweep_runs",
    "slot": "2026-11-18T12:02:00+00:00",
    "run_id": 1,
    "worker_id": "2fae9a10/f85ad270",
    "more": False,
    "xray_trace_id": "1-6afd940a",
}
FAILED = {
    "timestamp": "2026-11-18T12:03:22Z",
    "level": "ERROR",
    "errorType": "TaskUnknown",
    "errorMessage": "task 'swep_runs' is not registered",
    "requestId": "29bc97b1",
    "stackTrace": [
        '  File "/var/task/handler.py", line 21, in handler\n',
        '  File "/opt/x/registry.py", line 79, in find\n',
    ],
}
RAN = {
    "_aws": {"Timestamp": 1},
    "task": "sweep_runs",
    "service": "signalbox",
    "message": "run.succeeded",
    "slot": "2026-11-18T12:02:00+00:00",
    "run_id": 1,
    "worker_id": "2fae9a10/f85ad270",
    "trigger": "schedule",
    "reason": None,
    "RunsSucceeded": [1.0],
    "TaskItems": [3.0],
    "TaskDuration": [12.0],
}
METRICS = {"_aws": {"Timestamp": 1}, "task": "sweep_runs", "service": "signalbox", "RunsSucceeded": [1.0]}


def report(status: str, **more: Any) -> dict[str, Any]:
    metrics = {"durationMs": 9.4, "maxMemoryUsedMB": 46}
    record = {"requestId": "2fae9a10", "metrics": metrics, "status": status, **more}
    return {"time": "2026-11-18T12:03:22.407Z", "type": "platform.report", "record": record}


def record(fields: Any, at: datetime | None = None) -> LogRecord:
    return LogRecord.read(fields if isinstance(fields, str) else json.dumps(fields), "archiver", at)


def shown(fields: Any) -> str:
    return show_record(record(fields)).plain


def test_engine_event_shows_its_name_and_ids_without_noise() -> None:
    assert shown(EVENT) == "archiver INFO    slot.caught_up  task=sweep_runs  slot=2026-11-18T12:02Z  run_id=1"


def test_end_of_a_run_shows_what_it_did_without_metrics() -> None:
    ids = "task=sweep_runs  slot=2026-11-18T12:02Z  run_id=1  trigger=schedule  items=3  took=12ms"
    assert shown(RAN) == f"archiver INFO    run.succeeded  {ids}"


@pytest.mark.parametrize(
    ("event", "level"),
    [("run.succeeded", "INFO"), ("run.skipped", "INFO"), ("run.missed", "WARNING"), ("run.failed", "ERROR")],
)
def test_a_run_that_did_not_go_well_has_the_level_for_it(event: str, level: str) -> None:
    assert record(RAN | {"message": event}).level == level


def test_an_error_shows_its_type_its_message_and_where_it_came_up() -> None:
    line = "TaskUnknown: task 'swep_runs' is not registered (at registry.py:79 in find)  request=29bc97b1"
    assert shown(FAILED) == f"archiver ERROR   {line}"


def test_a_logged_exception_shows_the_last_line_of_its_trace() -> None:
    fields = EVENT | {"message": "run.abandoned", "exception_name": "OSError", "exception": "Trace\nOSError: no disk"}
    assert "run.abandoned: OSError: no disk" in shown(fields)


def test_a_report_shows_what_the_invocation_took() -> None:
    assert shown(report("timeout")).endswith("platform.report  status=timeout  request=2fae9a10  took=9ms  memory=46MB")


@pytest.mark.parametrize("text", ["plain words", "[1, 2]", '"text"', "{", "null", ""])
def test_what_is_no_json_object_is_shown_as_it_is(text: str) -> None:
    assert shown(text) == f"archiver INFO    {text}"


@pytest.mark.parametrize("fields", [{}, {"record": 1}, {"type": "platform.report"}, {"level": None}, {"slot": "soon"}])
def test_no_object_is_too_odd_to_be_shown(fields: dict[str, Any]) -> None:
    assert shown(fields).startswith("archiver ")


@pytest.mark.parametrize(
    ("fields", "of_interest"),
    [
        (EVENT, True),
        (FAILED, True),
        ("plain words", True),
        (RAN, True),
        (METRICS, False),
        ({"type": "platform.start", "record": {}}, False),
        (report("success"), False),
        (report("timeout"), True),
    ],
)
def test_metrics_and_what_went_well_is_left_out_unless_asked_for(fields: Any, of_interest: bool) -> None:
    assert record(fields).is_of_interest is of_interest


def test_the_time_is_short_for_today_and_has_its_date_otherwise() -> None:
    assert show_record(record("x", AT), AT).plain.startswith("12:03:22.405 archiver")
    assert show_record(record("x", AT), AT.replace(day=19)).plain.startswith("2026-11-18 12:03:22.405 archiver")
