"""Share what `pause` and `resume` do: WHAT is a type, lane, tenant or key as a whole, a schedule, or jobs."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import UsageRefused
from signalbox_cli.options.bulk_options import (
    BulkCommand,
    actor_params,
    add_bulk_options,
    run_bulk_action,
    show_preview,
)
from signalbox_cli.options.filters import JOBS
from signalbox_cli.options.shared import add_target
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import print_json

WHOLE = ("type", "lane", "tenant", "key")


def configure_pause(parser: CommandParser, verb: str) -> None:
    parser.usage = (
        f"signalbox {verb} type|lane|tenant|key NAME [--reason TEXT]\n"
        f"       signalbox {verb} schedule NAME [--reason TEXT]\n"
        f"       signalbox {verb} jobs [ID ...] [FILTER ...] [--dry-run] [--yes]"
    )
    parser.add_argument(
        "what",
        metavar="WHAT",
        choices=(*WHOLE, "schedule", "jobs"),
        help=f"what to {verb}: type, lane, tenant, key, schedule or jobs",
    )
    parser.add_argument(
        "names", metavar="NAME|ID", nargs="*", help="its name; for jobs their ids, or none with filters"
    )
    add_bulk_options(parser)
    add_target(parser)


def run_pause(args: Namespace, command: BulkCommand) -> int:
    """Send the action for a limit, a schedule or jobs."""
    if args.what == "jobs":
        return run_bulk_action(command, args, args.names)
    if len(args.names) != 1:
        raise UsageRefused(f"name one {args.what}; `signalbox {args.command.name} --help` shows examples")
    if JOBS.filters(args):
        raise UsageRefused(f"filters choose jobs: `signalbox {args.command.name} jobs --help`")
    [name] = args.names
    if args.what == "schedule":
        return _pause_schedule(args, name, command)
    answer = choose_target(args).operate(
        command.operation, kind=args.what, key=name, dry_run=args.dry_run or None, **actor_params(args)
    )
    _show(args, command, answer, f"{args.what} {name}")
    return 0


def _pause_schedule(args: Namespace, name: str, command: BulkCommand) -> int:
    if args.dry_run:
        raise UsageRefused("--dry-run does not apply to a schedule")
    answer = choose_target(args).operate(f"{command.operation}_schedule", id=name, **actor_params(args))
    _show(args, command, answer, f"schedule {name}")
    return 0


def _show(args: Namespace, command: BulkCommand, answer: dict[str, Any], what: str) -> None:
    if args.json:
        print_json(answer)
    elif "dry_run" in answer:
        show_preview(command, answer["dry_run"], to_stderr=False)
    else:
        details = f"; {command.describe(answer)}" if "resumed" in answer else ""
        print(f"{what} is {command.verb}d{details}" + ("" if answer.get("known", True) else "; it has no jobs yet"))
