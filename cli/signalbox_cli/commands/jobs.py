"""`signalbox jobs` lists jobs, newest first."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.filters import JOBS
from signalbox_cli.options.shared import TIME_FORMS, add_target, add_watch, positive
from signalbox_cli.target import pages
from signalbox_cli.target.pages import fetch_pages
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import console, print_json, print_lines, width_of
from signalbox_cli.views.job_table import job_table

EXAMPLES = (
    Example("jobs", "list the newest fifty jobs"),
    Example("jobs --status failed --since 1h", "list failed jobs of the last hour"),
    Example("jobs --type deliver_webhook --tenant acme --all", "list all jobs of a type and a tenant"),
    Example("jobs --status running --watch", "list running jobs, again every two seconds"),
    Example("jobs --stack signalbox-prod --status running --json", "a stack on AWS, as JSON"),
)


def configure(parser: CommandParser) -> None:
    parser.explain(TIME_FORMS)
    JOBS.add(parser)
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument("--limit", type=positive, default=50, metavar="N", help="show at most N (default: 50)")
    how_many.add_argument("--all", action="store_true", help="show all")
    parser.add_argument("--before", metavar="ID", help="show the page before this job")
    add_watch(parser)
    add_target(parser)


def run(args: Namespace) -> int:
    filters = JOBS.filters(args)
    jobs, following = fetch_pages(
        choose_target(args), pages.JOBS, None if args.all else args.limit, args.before, **filters
    )
    if args.json:
        print_json({"jobs": jobs, "next": following})
        return 0
    if not jobs:
        print("no job matches" if filters or args.before else "no job yet; `signalbox submit --help` shows how")
        return 0
    out = console()
    print_lines(out, job_table(jobs, width_of(out), datetime.now(UTC)))
    if following is not None:
        print(f"the newest {len(jobs):,}; --limit N shows more, --all shows all, --before {following} the next page")
    return 0
