"""The options by which dead letters are chosen, and how they look in a table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.choice import Choice
from signalbox_cli.options.shared import TIME, instant
from signalbox_cli.views.table import Column, Row
from signalbox_cli.views.times import show_age

STATUSES = ("pending", "investigating", "resolved", "ignored", "redriven")
LETTERS = Choice(
    "dead letters",
    "a dead letter",
    "--fingerprint",
    {
        "type": "job_type",
        "status": "status",
        "fingerprint": "fingerprint",
        "severity": "severity",
        "source": "source",
        "tenant": "tenant",
        "since": "since",
        "until": "until",
    },
    too_wide=("until", "status"),
)
COLUMNS = (
    Column("id"),
    Column("type"),
    Column("status"),
    Column("reason"),
    Column("severity"),
    Column("attempts", right=True),
    Column("failed"),
)
KIND_COLUMNS = (
    Column("fingerprint"),
    Column("type"),
    Column("total", right=True),
    Column("pending", right=True),
    Column("looked at", right=True),
    Column("severity"),
    Column("last"),
)


def add_filters(parser: CommandParser) -> None:
    group = parser.add_argument_group("which dead letters (all that is given must hold)")
    group.add_argument("--type", metavar="TYPE", help="of jobs of this type")
    group.add_argument("--status", choices=STATUSES, help="in this state")
    group.add_argument("--fingerprint", metavar="PRINT", help="of this kind of failure; --kinds lists them")
    group.add_argument("--severity", choices=("info", "warning", "critical"), help="as grave as this")
    group.add_argument("--source", choices=("job", "message", "invocation"), help="of a job, a lost message or event")
    group.add_argument("--tenant", metavar="TENANT", help="of this tenant")
    group.add_argument("--since", type=instant, metavar=TIME, help="that failed from then on")
    group.add_argument("--until", type=instant, metavar=TIME, help="that failed up to then")


def letter_row(letter: dict[str, Any], clock: datetime) -> Row:
    cells = [
        letter["id"],
        letter["job_type"],
        letter["status"],
        letter["failure_reason"],
        letter["severity"],
        str(letter["total_attempts"]),
        show_age(letter["last_failed_at"], clock),
    ]
    return Row(cells, f"{letter['error_type']}: {letter['error_message']}" if letter["error_type"] else "")


def kind_row(kind: dict[str, Any], clock: datetime) -> Row:
    cells = [
        kind["fingerprint"],
        kind["job_type"],
        f"{kind['total']:,}",
        f"{kind['pending']:,}",
        f"{kind['investigating']:,}",
        kind["severity"],
        show_age(kind["last_seen"], clock),
    ]
    return Row(cells, f"{kind['error_type']}: {kind['error_message']}" if kind["error_type"] else "")
