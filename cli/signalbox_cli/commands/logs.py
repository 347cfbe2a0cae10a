"""`signalbox logs` shows what the functions logged, merged in order of time, one readable line a record."""

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
    Example("logs", "what all functions logged in the last ten minutes"),
    Example("logs --follow", "and what they will log, until Ctrl-C"),
    Example("logs archiver --since 2h --task prune_history", "one task's"),
    Example("logs --since 1d --grep 'ERROR|WorkerLost'", "what matches a regular expression"),
    Example("logs --all --json --stack signalbox-prod", "each record as it is, a line of JSON each"),
)
_LOOK_AGAIN_SECONDS = 1.0


def configure(parser: CommandParser) -> None:
    parser.explain(
        f"{TIME_FORMS} Metrics, and the starts and ends of invocations that went well, are left out without --all."
    )
    parser.add_argument(
        "function", metavar="FUNCTION", nargs="?", help="archiver, worker, dead-letter … (default: all)"
    )
    parser.add_argument("--since", type=instant, metavar=TIME, help="from then on (default: 10m)")
    parser.add_argument("--follow", "-f", action="store_true", help="go on until Ctrl-C")
    parser.add_argument("--task", metavar="TASK", help="what this task logged")
    parser.add_argument("--grep", metavar="REGEX", type=_pattern, help="what matches, in any field")
    parser.add_argument("--all", action="store_true", help="metrics and every invocation's start and end, too")
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
        say("nothing was logged in that time; --since 1d looks further back, --all at all that there is")
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
