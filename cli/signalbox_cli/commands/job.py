"""`signalbox job` shows one job: its state, attempts, dependencies, and a timeline."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.shared import add_target
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import console, print_json, print_lines, width_of
from signalbox_cli.views.job_page import job_page

EXAMPLES = (
    Example("job ID", "show its state, attempts and dependencies, and who changed it"),
    Example("job 019e2a7c-5b3a-7c41", "the start of an id is enough if only one job has it"),
    Example("job ID --json", "print all columns as JSON"),
)


def configure(parser: CommandParser) -> None:
    parser.add_argument("id", metavar="ID", help="the job's id, or its start; `signalbox jobs` lists them")
    add_target(parser)


def run(args: Namespace) -> int:
    found = choose_target(args).operate("show_job", id=args.id)
    if args.json:
        print_json(found)
    else:
        out = console()
        print_lines(out, job_page(found, width_of(out), datetime.now(UTC)))
    return 0
