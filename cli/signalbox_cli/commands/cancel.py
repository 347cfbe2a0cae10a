"""`signalbox cancel` cancels waiting jobs at once and asks running jobs to stop."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.bulk_options import BulkCommand, add_bulk_options, run_bulk_action
from signalbox_cli.options.shared import TIME_FORMS, add_target

EXAMPLES = (
    Example("cancel ID", "one job, by its id"),
    Example("cancel --type import_table --tenant acme", "preview the jobs, ask, and cancel them"),
    Example("cancel --tag night --status pending --dry-run", "only show a preview"),
    Example(
        "cancel --group invoices-2026-02 --yes --reason 'wrong prices'", "do not ask; the audit log keeps the reason"
    ),
)


def configure(parser: CommandParser) -> None:
    parser.explain(
        "A running job receives the request within seconds and stops when its code checks for it. If it ends before "
        "that, its result stays. Dependents of a cancelled job follow their on_failure policy. "
        f"{TIME_FORMS}"
    )
    parser.add_argument("ids", metavar="ID", nargs="*", help="the ids of the jobs, or their starts")
    add_bulk_options(parser)
    add_target(parser)


def run(args: Namespace) -> int:
    return run_bulk_action(COMMAND, args, args.ids)


def _describe(answer: Mapping[str, Any]) -> str:
    asked = f"; asked {answer['requested']:,} running to stop" if answer["requested"] else ""
    return f"cancelled {answer['cancelled']:,}{asked}"


COMMAND = BulkCommand("cancel_jobs", "cancel", ("pending", "queued", "paused", "running"), _describe)
