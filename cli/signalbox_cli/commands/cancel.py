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
    Example("cancel --type import_table --tenant acme", "show what that concerns, ask, and cancel it"),
    Example("cancel --tag night --status pending --dry-run", "only show what it would concern"),
    Example(
        "cancel --group invoices-2026-02 --yes --reason 'wrong prices'", "do not ask; the audit log has the reason"
    ),
)


def configure(parser: CommandParser) -> None:
    parser.explain(
        "A running job hears of it within seconds and stops where it looks; if it ends by itself first, it stays what "
        f"it became. What depends on a cancelled job ends as its policy says. {TIME_FORMS}"
    )
    parser.add_argument("ids", metavar="ID", nargs="*", help="the jobs, by their ids or the starts of them")
    add_bulk_options(parser)
    add_target(parser)


def run(args: Namespace) -> int:
    return run_bulk_action(COMMAND, args, args.ids)


def _tell(answer: Mapping[str, Any]) -> str:
    asked = f"; asked {answer['requested']:,} that run to stop" if answer["requested"] else ""
    return f"cancelled {answer['cancelled']:,}{asked}"


COMMAND = BulkCommand("cancel_jobs", "cancel", ("pending", "queued", "paused", "running"), _tell)
