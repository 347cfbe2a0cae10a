"""`signalbox schedules` lists job schedules and when they are next due, and manages them."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from datetime import UTC, datetime, timedelta
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import UsageRefused
from signalbox_cli.options.bulk_options import actor_params
from signalbox_cli.options.filters import LANES
from signalbox_cli.options.shared import TIME, TIME_FORMS, add_target, instant, json_object, positive
from signalbox_cli.target.pages import SCHEDULES, fetch_pages
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import console, print_json, print_lines, width_of
from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.times import read_span, show_age, show_instant, show_span

EXAMPLES = (
    Example("schedules", "list all, and when they are next due"),
    Example(
        "schedules create nightly run_task --cron '15 2 * * *' --timezone Europe/Berlin "
        """--payload '{"task": "prune_history"}'""",
        "every night, in Berlin time",
    ),
    Example("""schedules create sweep run_task --every 10m --payload '{"task": "sweep_runs"}'""", "every ten minutes"),
    Example("schedules pause nightly --reason 'month end'", "submit nothing until it is resumed"),
    Example("schedules resume nightly", "submit again, from its next time on"),
    Example("schedules delete nightly", "delete it; jobs that it has submitted stay"),
)
VERBS = ("list", "create", "pause", "resume", "delete")
_CREATE_ONLY = (
    "cron",
    "every",
    "at",
    "timezone",
    "payload",
    "catch_up",
    "max_runs",
    "expires",
    "priority",
    "lane",
    "replace",
    "tenant",
)


def configure(parser: CommandParser) -> None:
    parser.usage = (
        "signalbox schedules [list]\n"
        "       signalbox schedules create NAME TYPE --cron EXPRESSION | --every SPAN | --at TIME [OPTION ...]\n"
        "       signalbox schedules pause|resume|delete NAME [--reason TEXT]"
    )
    parser.explain(TIME_FORMS)
    parser.add_argument("verb", metavar="VERB", nargs="?", choices=VERBS, default="list", help=", ".join(VERBS))
    parser.add_argument("name", metavar="NAME", nargs="?", help="the name or id of the schedule")
    parser.add_argument("type", metavar="TYPE", nargs="?", help="the type of the jobs that it submits")
    parser.add_argument("--reason", metavar="TEXT", help="the reason, for the audit log")
    _configure_create(parser)
    add_target(parser)


def _configure_create(parser: CommandParser) -> None:
    group = parser.add_argument_group("create")
    when = group.add_mutually_exclusive_group()
    when.add_argument("--cron", metavar="EXPRESSION", help="minute, hour, day, month, weekday: '15 2 * * *'")
    when.add_argument("--every", type=_span, metavar="SPAN", help="at this interval: 90s, 10m, 2h")
    when.add_argument("--at", type=instant, metavar=TIME, help="once, at this time")
    group.add_argument("--timezone", metavar="ZONE", help="the time zone of the cron expression (default: UTC)")
    group.add_argument("--payload", type=json_object, metavar="JSON", help="the payload of each job")
    group.add_argument(
        "--catch-up", choices=("all", "latest", "skip"), help="which missed times to catch up (default: latest)"
    )
    group.add_argument("--max-runs", type=positive, metavar="N", help="end after N jobs")
    group.add_argument("--expires", type=instant, metavar=TIME, help="end after this time")
    group.add_argument("--priority", type=positive, metavar="N", help="the priority of each job, 1 (first) to 10")
    group.add_argument("--lane", choices=LANES, help="the lane of each job")
    group.add_argument("--replace", action="store_true", default=None, help="replace a schedule with the same name")
    group.add_argument("--tenant", metavar="TENANT", help="the tenant of each job")


def _span(text: str) -> timedelta:
    span = read_span(text)
    if not span:
        raise ArgumentTypeError(f"'{text}' is not a length of time, such as 90s, 10m or 2h")
    return span


def run(args: Namespace) -> int:
    if args.verb == "list":
        return _list(args)
    if not args.name or (args.verb == "create") != bool(args.type):
        wanted = "NAME TYPE" if args.verb == "create" else "NAME"
        raise UsageRefused(f"`schedules {args.verb}` takes {wanted}; `signalbox schedules --help` shows examples")
    if args.verb == "create":
        return _create(args)
    if any(getattr(args, name) is not None for name in _CREATE_ONLY):
        raise UsageRefused(f"`schedules {args.verb}` takes no options of `schedules create`")
    answer = choose_target(args).operate(f"{args.verb}_schedule", id=args.name, **actor_params(args))
    _show(args, answer, f"schedule {args.name} is {args.verb}d")
    return 0


def _create(args: Namespace) -> int:
    if args.cron is None and args.every is None and args.at is None:
        raise UsageRefused("say when: --cron, --every or --at")
    options = {name: getattr(args, name) for name in ("priority", "lane") if getattr(args, name) is not None}
    answer = choose_target(args).operate(
        "create_schedule",
        name=args.name,
        job_type=args.type,
        payload=args.payload,
        cron=args.cron,
        every_seconds=args.every and args.every.total_seconds(),
        at=args.at,
        timezone=args.timezone,
        catch_up=args.catch_up,
        max_runs=args.max_runs,
        expires_at=args.expires,
        tenant=args.tenant,
        replacing=args.replace,
        options=options or None,
        **actor_params(args),
    )
    due = answer["schedule"]["next_run_at"]
    _show(args, answer, f"schedule {args.name} is created, due {show_instant(due) if due else 'never'}")
    return 0


def _show(args: Namespace, answer: dict[str, Any], sentence: str) -> None:
    if args.json:
        print_json(answer)
    else:
        print(sentence)


def _list(args: Namespace) -> int:
    if args.name:
        raise UsageRefused(f"`schedules list` takes no name; `signalbox jobs --schedule {args.name}` lists its jobs")
    found = {"schedules": fetch_pages(choose_target(args), SCHEDULES)[0]}
    if args.json:
        print_json(found)
    elif found["schedules"]:
        out, clock = console(), datetime.now(UTC)
        print_lines(out, table(_COLUMNS, [_row(one, clock) for one in found["schedules"]], width_of(out)))
    else:
        print("no schedule yet; `signalbox schedules create --help` shows how")
    return 0


_COLUMNS = (
    Column("name"),
    Column("type"),
    Column("when"),
    Column("state"),
    Column("next"),
    Column("last"),
    Column("runs", right=True),
)


def _row(one: dict[str, Any], clock: datetime) -> Row:
    due, last = one["next_run_at"], one["last_run_at"]
    runs = f"{one['run_count']:,}" + (f"/{one['max_runs']:,}" if one["max_runs"] else "")
    cells = [
        one["name"],
        one["job_type"],
        _when(one),
        one["status"],
        show_instant(due) if due else "",
        show_age(last, clock) if last else "",
        runs,
    ]
    return Row(cells, _note(one, clock))


def _when(one: dict[str, Any]) -> str:
    if one["schedule_type"] == "cron":
        return f"{one['cron_expression']} {one['timezone']}"
    if one["schedule_type"] == "interval":
        return f"every {show_span(timedelta(milliseconds=one['interval_ms']))}"
    return f"once, {show_instant(one['run_at'])}"


def _note(one: dict[str, Any], clock: datetime) -> str:
    missed = [f"{one['missed_count']:,} missed"] if one["missed_count"] else []
    why = [_pause(one, clock)] if one["status"] == "paused" else []
    return "; ".join([*([one["error"]] if one["error"] else []), *why, *missed])


def _pause(one: dict[str, Any], clock: datetime) -> str:
    why = f": {one['paused_reason']}" if one["paused_reason"] else ""
    return f"paused by {one['paused_by']} {show_age(one['paused_at'], clock)}{why}"
