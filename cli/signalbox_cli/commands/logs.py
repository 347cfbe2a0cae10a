"""`signalbox logs` shows the logs of the functions, merged in order of time, one line for each record."""

from __future__ import annotations

import re
import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import NoReturn

from botocore.exceptions import ClientError

from signalbox.packs.suggest import nearest
from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import CommandFailed, UsageRefused
from signalbox_cli.options.shared import TIME, TIME_FORMS, add_target, instant
from signalbox_cli.stack.log_groups import LogReader, find_groups, follow_from
from signalbox_cli.target.target import Target, choose_target
from signalbox_cli.terminal import console, print_json, print_lines, say
from signalbox_cli.views.log_line import LogRecord, show_record

EXAMPLES = (
    Example("logs", "show the last ten minutes of all functions"),
    Example("logs --follow", "also show new records, until Ctrl-C"),
    Example("logs archiver --since 2h --task prune_history", "show one task's records"),
    Example("logs --since 1d --grep 'ERROR|WorkerLost'", "show what matches a regular expression"),
    Example("logs --all --json --stack signalbox-prod", "print every record as a line of JSON"),
)
_LOOK_AGAIN_SECONDS = 1.0


def configure(parser: CommandParser) -> None:
    parser.explain(
        f"{TIME_FORMS} Metrics, and the starts and ends of successful invocations, are shown only with --all."
    )
    parser.add_argument(
        "function", metavar="FUNCTION", nargs="?", help="archiver, worker, dead-letter … (default: all)"
    )
    parser.add_argument("--since", type=instant, metavar=TIME, help="from then on (default: 10m)")
    parser.add_argument("--follow", "-f", action="store_true", help="keep showing new records until Ctrl-C")
    parser.add_argument("--task", metavar="TASK", help="only records of this task")
    parser.add_argument("--grep", metavar="REGEX", type=_pattern, help="only records with a match in any field")
    parser.add_argument(
        "--all", action="store_true", help="also show metrics, and the start and end of every invocation"
    )
    add_target(parser)


def run(args: Namespace) -> int:
    target = choose_target(args)
    if args.task is not None:
        _require_known(target, args.task)
    since: datetime = args.since or instant("10m")
    reader = LogReader(target.client("logs"), find_groups(target, args.function))
    show = _show_json if args.json else _show_lines
    if args.follow:
        with suppress(KeyboardInterrupt):  # Ctrl-C is the usual way to stop it
            _follow(reader, since, lambda records: show(filter(_wanted(args), records)))
        return 0
    shown = show(filter(_wanted(args), reader.read(since)))
    if not shown and not args.json:
        say("no log records in that time; --since 1d shows an earlier time, --all also shows metrics")
    return 0


def _require_known(target: Target, task: str) -> None:
    """Refuse a task that the stack does not have. A broken stack that can't say still has logs to read."""
    try:
        known = [one["name"] for one in target.operate("list_tasks")["tasks"]]
    except (CommandFailed, ClientError):
        return
    if task not in known:
        raise UsageRefused(
            f"task '{task}' is not registered{nearest(task, known, '`signalbox slots` lists the tasks')}"
        )


def _follow(reader: LogReader, since: datetime, show: Callable[[Iterable[LogRecord]], object]) -> NoReturn:
    while True:
        records = reader.read(since)
        show(records)
        since = follow_from(records, since)
        time.sleep(_LOOK_AGAIN_SECONDS)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ArgumentTypeError(f"'{text}' is not a regular expression: {error}") from None


def _wanted(args: Namespace) -> Callable[[LogRecord], bool]:
    def is_wanted(record: LogRecord) -> bool:
        return (
            (args.all or record.is_of_interest)
            and (args.task is None or record.task == args.task)
            and (args.grep is None or bool(args.grep.search(record.text)))
        )

    return is_wanted


def _show_lines(records: Iterable[LogRecord]) -> int:
    lines = [show_record(record, datetime.now(UTC)) for record in records]
    print_lines(console(), lines)
    return len(lines)


def _show_json(records: Iterable[LogRecord]) -> int:
    shown = 0
    for shown, record in enumerate(records, 1):  # noqa: B007 - the last count is the answer
        at = record.at.isoformat(timespec="milliseconds") if record.at else None
        print_json({"time": at, "function": record.function, "record": record.fields or record.text})
    return shown
