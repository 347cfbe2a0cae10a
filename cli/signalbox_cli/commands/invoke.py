"""`signalbox invoke` sends one payload to a function, as a rule or a person on AWS would."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.doctor.lanes import READERS
from signalbox_cli.errors import UsageRefused
from signalbox_cli.options.shared import TIME, TIME_FORMS, add_target, instant, json_object
from signalbox_cli.target.function_response import FunctionResponse
from signalbox_cli.target.target import Target, choose_target
from signalbox_cli.terminal import console, print_json, print_lines
from signalbox_cli.views.log_line import LogRecord, show_record
from signalbox_cli.views.times import show_instant

EXAMPLES = (
    Example("invoke sweep_runs", "run a task for its current slot"),
    Example("invoke prune_history --reference-time 2026-01-05T02:30:00Z", "run it for a past slot"),
    Example("invoke prune_history --reference-time 1d --force", "run it even if the slot has succeeded"),
    Example(
        """invoke reconcile_slots --params '{"lookback_hours": 24}' --logs""", "run it with params, and show its logs"
    ),
    Example("invoke --event events/poll_data.json", "send a payload from a file (- is the standard input)"),
    Example("invoke poll_data --async --stack signalbox-prod", "queue it on AWS, without waiting"),
)
FUNCTIONS = ("api", "archiver", "poller", "migrator", "worker", "worker-heavy", "dead-letter")
# A payload without any field is the poller's, too.
_POLLER_FIELDS = {"force_retry", "backfill_hours", "limit"}
_OWN_FIELDS = ("reference_time", "scheduled_time", "force", "params")


def configure(parser: CommandParser) -> None:
    parser.explain(TIME_FORMS)
    parser.add_argument("task", metavar="TASK", nargs="?", help="the task to run")
    parser.add_argument("--reference-time", type=instant, metavar=TIME, help="the run's now, which gives its slot")
    parser.add_argument("--scheduled-time", type=instant, metavar=TIME, help="the same, as a rule gives it")
    parser.add_argument("--force", action="store_true", default=None, help="run even if the slot has succeeded")
    parser.add_argument("--params", type=json_object, metavar="JSON", help="the task's params")
    parser.add_argument("--event", metavar="FILE", help="the whole payload, from a file; - is the standard input")
    parser.add_argument(
        "--function", choices=FUNCTIONS, help="the function to send it to (default: the task's function)"
    )
    parser.add_argument("--async", dest="queued", action="store_true", help="queue it, without waiting for the answer")
    parser.add_argument("--logs", action="store_true", help="show the end of the function's log")
    add_target(parser)


def run(args: Namespace) -> int:
    payload = _payload(args)
    target = choose_target(args)
    function = args.function or _function_of(payload, target)
    answer = target.invoke(function, payload, "Event" if args.queued else "RequestResponse")
    if args.logs:
        _show_log(answer)
    if args.queued:
        _show_queued(answer, args)
    else:
        _show(answer.value(), args)
    return 0


def _payload(args: Namespace) -> Any:
    if args.event is not None:
        if args.task or any(getattr(args, name) is not None for name in _OWN_FIELDS):
            raise UsageRefused("--event holds the whole payload: leave out TASK and the options of the payload")
        return _read_event(args.event)
    if not args.task:
        raise UsageRefused("name a TASK, or give a payload with --event; `signalbox invoke --help` shows examples")
    fields = {
        "reference_time": args.reference_time and args.reference_time.isoformat(),
        "scheduled_time": args.scheduled_time and args.scheduled_time.isoformat(),
        "force": args.force,
        "params": args.params,
    }
    return {"task": args.task, **{name: value for name, value in fields.items() if value is not None}}


def _read_event(name: str) -> Any:
    """Return any JSON value: the function decides whether it is a payload."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageRefused(f"--event {name} can't be read: {error}") from None
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageRefused(f"--event {name} holds no JSON: {error}") from None


def _function_of(payload: Any, target: Target) -> str:
    """Return the function for this payload. An unknown one goes to the archiver, whose error names the nearest task."""
    given = payload if isinstance(payload, dict) else {}
    if "action" in given:
        return "migrator"
    if isinstance(given.get("Records"), list):
        return _reader_of(given["Records"], target)
    if "operation" in given:
        return "api"
    if "task" not in given:
        return "poller" if isinstance(payload, dict) and given.keys() <= _POLLER_FIELDS else "archiver"
    tasks = target.operate("list_tasks")["tasks"]
    return next((task["function"] for task in tasks if task["name"] == given["task"]), "archiver")


def _reader_of(records: list[Any], target: Target) -> str:
    """Return the function that reads the queue of the first message."""
    source = records[0].get("eventSourceARN") if records and isinstance(records[0], dict) else None
    queue = str(source).rpartition(":")[2].removeprefix(f"{target.stack}-")
    return READERS.get(queue, "worker")


def _show_log(answer: FunctionResponse) -> None:
    out = console(stderr=True)
    for line in answer.log.splitlines():
        print_lines(out, [show_record(LogRecord.read(line, answer.function))])


def _show_queued(answer: FunctionResponse, args: Namespace) -> None:
    if args.json:
        print_json({"accepted": True, "function": answer.function, "request_id": answer.request_id})
    else:
        print(f"accepted by {answer.function} as request {answer.request_id}; `signalbox logs` shows its result")


def _show(value: Any, args: Namespace) -> None:
    if args.json:
        print_json(value)
    elif isinstance(value, dict) and "slot" in value:
        print(_sentence(value))
    else:
        print(json.dumps(value, indent=2))


def _sentence(answer: dict[str, Any]) -> str:
    parts = [f"{answer['task']} for {show_instant(answer['slot'])}: {answer['status']}"]
    if answer["status"] == "succeeded":
        parts.append(f"{answer['items']:,} items")
    if "reason" in answer:
        parts.append(str(answer["reason"]))
    if answer.get("more"):
        parts.append("work is left; a continuation follows")
    return f"{', '.join(parts)} (run {answer['run_id']})"
