"""`signalbox group` shows the progress of a group of jobs, and seals it."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.bulk_options import actor_params
from signalbox_cli.options.shared import add_target
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import print_json
from signalbox_cli.views.numbers import counted
from signalbox_cli.views.times import show_instant

EXAMPLES = (
    Example("group import-7", "show how many of its jobs have ended, and how"),
    Example("group import-7 --seal", "accept no more jobs; the completion job starts when all have ended"),
)


def configure(parser: CommandParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the name that the jobs were submitted with")
    parser.add_argument("--seal", action="store_true", help="accept no more jobs")
    parser.add_argument("--reason", metavar="TEXT", help="the reason, for the audit log")
    add_target(parser)


def run(args: Namespace) -> int:
    target = choose_target(args)
    if args.seal:
        found = target.operate("seal_group", id=args.name, **actor_params(args))
    else:
        found = target.operate("show_group", id=args.name)
    if args.json:
        print_json(found)
    else:
        print("\n".join(_lines(found["group"])))
    return 0


def _lines(group: dict[str, Any]) -> list[str]:
    how = ", ".join(f"{group[state]:,} {state}" for state in ("completed", "failed", "cancelled") if group[state])
    closed = "sealed" if group["sealed"] else "open: accepts more jobs"
    lines = [
        f"group {group['id']}: {counted(group['total'], 'job')}, {group['percent']} % ended"
        + (f" ({how})" if how else ""),
        f"  {closed}",
    ]
    if group["finished_at"]:
        lines.append(f"  finished {show_instant(group['finished_at'])}")
    if group["completion_job_id"]:
        lines.append(f"  then     `signalbox job {group['completion_job_id']}`")
    return lines
