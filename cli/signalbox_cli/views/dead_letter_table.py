"""Show dead letters, and kinds of failure, as rows of a table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from signalbox_cli.views.table import Column, Row
from signalbox_cli.views.times import show_age, show_instant

COLUMNS = (
    Column("id", ids=8),
    Column("type"),
    Column("status"),
    Column("reason", spare=2),
    Column("severity", spare=3),
    Column("attempts", right=True, spare=4),
    Column("failed", spare=1),
)
KIND_COLUMNS = (
    Column("fingerprint"),
    Column("type"),
    Column("total", right=True),
    Column("pending", right=True),
    Column("looked at", right=True, spare=1),
    Column("severity", spare=2),
    Column("last"),
)


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
    error = f"{kind['error_type']}: {kind['error_message']}" if kind["error_type"] else ""
    return Row(cells, "; ".join(filter(None, [*_marks(kind), error])))


def _marks(kind: dict[str, Any]) -> list[str]:
    """Say that a kind has come back in a later version, or is ignored for a while."""
    return [
        f"regressed {show_instant(kind['regressed_at'])}" if kind["regressed_at"] else "",
        f"ignored until {show_instant(kind['ignored_until'])}" if kind["ignored_until"] else "",
        f"the next {kind['ignored_next_left']:,} are ignored" if kind["ignored_next_left"] else "",
    ]
