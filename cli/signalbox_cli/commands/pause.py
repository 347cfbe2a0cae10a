"""`signalbox pause` stops jobs of a type, lane, tenant, key or schedule, or certain jobs, from starting."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.bulk_options import BulkCommand
from signalbox_cli.options.pause_resume import configure_pause, run_pause

EXAMPLES = (
    Example(
        "pause type deliver_webhook --reason 'the receiver is down'", "no job of the type begins; those at work end"
    ),
    Example("pause tenant acme", "likewise of a tenant"),
    Example("pause schedule nightly-import", "it submits no job until it is resumed"),
    Example("pause jobs ID", "one job, by its id"),
    Example("pause jobs --type import_table --tag night --dry-run", "what a pause by filter would concern"),
)


def configure(parser: CommandParser) -> None:
    parser.explain("What runs is not stopped. `signalbox caps` lists what is paused.")
    configure_pause(parser, "pause")


def run(args: Namespace) -> int:
    return run_pause(args, COMMAND)


def _tell(answer: Mapping[str, Any]) -> str:
    return f"paused {answer['paused']:,}"


COMMAND = BulkCommand("pause", "pause", ("pending", "queued"), _tell)
