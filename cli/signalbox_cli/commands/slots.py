"""`signalbox slots` draws a row per task and a column per period, so that an outage stands out as a stripe."""

from __future__ import annotations

from argparse import Namespace

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.shared import TIME, TIME_FORMS, add_target, add_watch, instant
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import console, print_json, print_lines, shows_unicode, width_of
from signalbox_cli.views.slot_grid import fold, grid_lines

EXAMPLES = (
    Example("slots", "show all tasks over the last day"),
    Example("slots --task poll_data --since 3d", "show one task over three days"),
    Example("slots --since 2026-01-05T00:00:00Z --until 2026-01-05T06:00:00Z", "show a night in the past"),
    Example("slots --stack signalbox-prod --json", "a stack on AWS, as JSON"),
)
# Without a terminal, use a width that most terminals have.
_WIDTH = 120


def configure(parser: CommandParser) -> None:
    parser.explain(f"{TIME_FORMS} A column with several slots of a task shows the worst one.")
    parser.add_argument("--task", metavar="TASK", help="only this task")
    parser.add_argument("--since", type=instant, metavar=TIME, help="from then on (default: a day before --until)")
    parser.add_argument("--until", type=instant, metavar=TIME, help="up to then (default: now)")
    add_watch(parser)
    add_target(parser)


def run(args: Namespace) -> int:
    answer = choose_target(args).operate("show_slots", task=args.task, since=args.since, until=args.until)
    if args.json:
        print_json(answer)
        return 0
    out = console()
    print_lines(out, grid_lines(fold(answer, width_of(out, _WIDTH)), unicode=shows_unicode(out)))
    return 0
