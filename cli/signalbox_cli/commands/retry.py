"""`signalbox retry` runs jobs now that wait for a retry, a cap or their time."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.bulk_options import BulkCommand, add_bulk_options, run_bulk_action
from signalbox_cli.options.shared import TIME_FORMS, add_target

EXAMPLES = (
    Example("retry ID", "run one job now"),
    Example("retry --type deliver_webhook --tenant acme", "run all waiting jobs of a type and a tenant, after asking"),
    Example("retry --correlation order-7 --yes --json", "do not ask; print JSON"),
)


def configure(parser: CommandParser) -> None:
    parser.explain(
        "`signalbox redrive` retries dead letters. A job that depends on others keeps waiting. " + TIME_FORMS
    )
    parser.add_argument("ids", metavar="ID", nargs="*", help="the ids of the jobs, or their starts")
    add_bulk_options(parser)
    add_target(parser)


def run(args: Namespace) -> int:
    return run_bulk_action(COMMAND, args, args.ids)


def _describe(answer: Mapping[str, Any]) -> str:
    later = answer["hastened"] - answer["sent"]
    return f"{answer['hastened']:,} due now" + (f"; {later:,} of them are sent within a minute" if later > 0 else "")


COMMAND = BulkCommand("retry_jobs", "retry", ("pending",), _describe)
