"""`signalbox stats` shows job counts, throughput, failures, and the health of the job queue."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.shared import add_target, add_watch
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import console, print_json, print_lines, width_of
from signalbox_cli.views.stats_page import health_lines, stats_lines
from signalbox_cli.views.times import read_span

EXAMPLES = (
    Example("stats", "show the last day, by type, and the health"),
    Example("stats --type deliver_webhook --window 1h", "show one type over an hour"),
    Example("stats --tenant acme", "show one tenant; --by-tenant lists tenants"),
    Example("stats --health", "show only the health; exit code 1 if unhealthy"),
    Example("stats --stack signalbox-prod --json", "a stack on AWS, as JSON"),
)


def configure(parser: CommandParser) -> None:
    parser.explain("With --tenant, the counts of ended jobs include only jobs submitted within the window.")
    parser.add_argument("--type", metavar="TYPE", help="only this job type")
    parser.add_argument("--tenant", metavar="TENANT", help="only this tenant")
    parser.add_argument(
        "--by-tenant", action="store_true", help="also show a line for each tenant with jobs or dead letters"
    )
    parser.add_argument(
        "--window", type=_hours, metavar="SPAN", default=24.0, help="how far back to count: 1h, 7d (default: 24h)"
    )
    parser.add_argument("--health", action="store_true", help="show only the health and the alerts")
    add_watch(parser)
    add_target(parser)


def _hours(text: str) -> float:
    span = read_span(text)
    if not span:
        raise ArgumentTypeError(f"'{text}' is not a length of time, such as 1h, 24h or 7d")
    return span.total_seconds() / 3600


def run(args: Namespace) -> int:
    target = choose_target(args)
    health = target.operate("show_health")
    wanted = {"job_type": args.type, "tenant": args.tenant, "hours": args.window, "tenants": args.by_tenant}
    statistics = None if args.health else target.operate("show_statistics", **wanted)
    if args.json:
        print_json({"health": health} if statistics is None else {"health": health, "statistics": statistics})
    else:
        out = console()
        width = width_of(out)
        print_lines(out, health_lines(health))
        if statistics is not None:
            print_lines(out, stats_lines(statistics, width))
    return 1 if args.health and health["status"] == "unhealthy" else 0
