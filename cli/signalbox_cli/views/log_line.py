"""Show one record of a function's log as one line that a person can read.

A function logs JSON in four shapes: the engine's own events, its metrics with the end of a run, the runtime's errors,
and Lambda's own reports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from signalbox_cli.views.palette import style_of
from signalbox_cli.views.times import show_duration, show_instant

Fields = Mapping[str, Any]
# These stand elsewhere in the line, or only the JSON form needs them.
_UNSHOWN = frozenset(
    {"level", "location", "message", "timestamp", "service", "worker_id", "xray_trace_id", "stackTrace", "stack_trace"}
    | {"errorType", "errorMessage", "exception", "exception_name", "cold_start", "logger"}
    | {"_aws", "function_name", "function_memory_size", "function_arn", "function_request_id"}
)
_SHOWN_IF_SET = frozenset({"step", "more"})
# Levels for some ends of a run; other events keep their own.
_LEVELS = {"run.failed": "ERROR", "run.refused": "ERROR", "run.missed": "WARNING"}
_RENAMED = {"requestId": "request"}
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_FRAME = re.compile(r'File "(?:.*/)?([^"/]+)", line (\d+), in (\S+)')


@dataclass(frozen=True, slots=True)
class LogRecord:
    """Describe one event of a log group. `fields` is empty if the function wrote plain text."""

    function: str
    text: str
    fields: Fields
    at: datetime | None = None

    @staticmethod
    def read(text: str, function: str, at: datetime | None = None) -> LogRecord:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        return LogRecord(function, text, value if isinstance(value, dict) else {}, at)

    @property
    def is_of_interest(self) -> bool:
        """Return False for mere metrics and for the start and end of invocations that went well."""
        if self.is_report:
            return bool(self.fields["record"].get("status", "success") != "success")
        if "_aws" in self.fields:
            return "message" in self.fields
        return not str(self.fields.get("type", "")).startswith("platform.")

    @property
    def task(self) -> str | None:
        task = self.fields.get("task")
        return task if isinstance(task, str) else None

    @property
    def level(self) -> str:
        if "level" in self.fields:
            return str(self.fields["level"])
        if "_aws" in self.fields:
            return _LEVELS.get(str(self.fields.get("message")), "INFO" if self.is_of_interest else "METRIC")
        failed = self.is_report and self.is_of_interest
        return "ERROR" if failed else "INFO"

    @property
    def is_report(self) -> bool:
        return self.fields.get("type") == "platform.report" and isinstance(self.fields.get("record"), dict)


def show_record(record: LogRecord, today: datetime | None = None) -> Text:
    """Return time, function, level, message, and the ids that lead to more."""
    time = _time(record.at, today)
    line = Text()
    line.append(f"{time} " if time else "", style="bright_black")
    line.append(f"{record.function:8} ", style="cyan").append(f"{record.level:7} ", style=style_of(record.level))
    line.append(_message(record))
    for name, value in _ids(record).items():
        line.append(f"  {name}=", style="bright_black").append(value)
    return line


def _time(at: datetime | None, today: datetime | None) -> str:
    if at is None:
        return ""
    moment = at.astimezone(UTC)
    clock = moment.strftime("%H:%M:%S.") + f"{moment.microsecond // 1000:03d}"
    return clock if today and today.date() == moment.date() else f"{moment:%Y-%m-%d} {clock}"


def _message(record: LogRecord) -> str:
    fields = record.fields
    if not fields:
        return record.text
    if "errorMessage" in fields:
        return f"{fields.get('errorType', 'Error')}: {fields['errorMessage']}{_place(fields)}"
    if "exception_name" in fields:
        last = str(fields.get("exception", "")).strip().rpartition("\n")[2]
        return f"{fields.get('message')}: {last or fields['exception_name']}"
    if "_aws" in fields and "message" not in fields:
        return "metrics"
    return str(fields.get("message") or fields.get("type") or record.text)


def _place(fields: Fields) -> str:
    """Return where the error was raised: the last frame that is named."""
    frames = _FRAME.findall("\n".join(map(str, fields.get("stackTrace") or [])))
    return " (at {}:{} in {})".format(*frames[-1]) if frames else ""


def _ids(record: LogRecord) -> dict[str, str]:
    fields = record.fields
    if isinstance(fields.get("record"), dict):
        return _platform_ids(fields["record"])
    if "message" in fields and "_aws" in fields:
        return _ids_of_run(fields)
    return {_RENAMED.get(name, name): _value(value) for name, value in fields.items() if _is_shown(name, value)}


def _is_shown(name: str, value: Any) -> bool:
    return name not in _UNSHOWN and value is not None and not (name in _SHOWN_IF_SET and not value)


def _ids_of_run(fields: Fields) -> dict[str, str]:
    """Return a run's ids, with what it did and how long that took, from the metrics at its end."""
    ids = {name: _value(value) for name, value in fields.items() if name.islower() and _is_shown(name, value)}
    if "TaskItems" in fields:
        ids["items"] = _value(fields["TaskItems"])
    if "TaskDuration" in fields:
        ids["took"] = f"{_value(fields['TaskDuration'])}ms"
    return ids


def _platform_ids(report: Fields) -> dict[str, str]:
    metrics = report.get("metrics") or {}
    shown = {"status": report.get("status"), "error": report.get("errorType"), "request": report.get("requestId")}
    if "durationMs" in metrics:
        shown["took"] = show_duration(metrics["durationMs"]).replace(" ", "")
    if "maxMemoryUsedMB" in metrics:
        shown["memory"] = f"{metrics['maxMemoryUsedMB']}MB"
    return {name: str(value) for name, value in shown.items() if value is not None}


def _value(value: Any) -> str:
    if isinstance(value, list) and len(value) == 1:
        return _value(value[0])
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if not isinstance(value, str):
        return json.dumps(value)
    return show_instant(value) if _INSTANT.fullmatch(value) else value
