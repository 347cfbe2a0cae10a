"""`signalbox history` lists the runs in the ledger, newest first."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.shared import TIME, TIME_FORMS, add_target, add_watch, instant, positive
from signalbox_cli.target.pages import RUNS, fetch_pages
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import console, print_json, print_lines, width_of
from signalbox_cli.views.run_table import run_table

EXAMPLES = (
    Example("history", "list the newest fifty runs"),
    Example("history --task poll_data --since 2h", "list one task's runs, for slots of the last two hours"),
    Example("history --status failed --since 7d --all", "list every failure of a week"),
    Example("history --stack signalbox-prod --json", "a stack on AWS, as JSON"),
)
STATUSES = ("running", "succeeded", "failed", "skipped", "missed")
TRIGGERS = ("schedule", "manual", "backfill", "catch_up", "continuation")


def configure(parser: CommandParser) -> None:
    parser.explain(TIME_FORMS)
    parser.add_argument("--task", metavar="TASK", help="only runs of this task")
    parser.add_argument("--status", choices=STATUSES, help="only runs with this status")
    parser.add_argument("--trigger", choices=TRIGGERS, help="only runs with this trigger")
    parser.add_argument("--since", type=instant, metavar=TIME, help="only slots from then on")
    parser.add_argument("--until", type=instant, metavar=TIME, help="only slots up to then")
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument("--limit", type=positive, default=50, metavar="N", help="show at most N (default: 50)")
    how_many.add_argument("--all", action="store_true", help="show all")
    add_watch(parser)
    add_target(parser)


def run(args: Namespace) -> int:
    filters: dict[str, Any] = {name: getattr(args, name) for name in ("task", "status", "trigger", "since", "until")}
    runs, following = fetch_pages(choose_target(args), RUNS, None if args.all else args.limit, **filters)
    if args.json:
        print_json({"runs": runs, "next": following})
        return 0
    if not runs:
        print("no run matches" if any(filters.values()) else "no run yet")
        return 0
    out = console()
    print_lines(out, run_table(runs, width_of(out), datetime.now(UTC)))
    if following is not None:
        print(f"the newest {len(runs):,}; --limit N shows more, --all shows all")
    return 0
