"""Read from the ledger and the logs what followed from fired rules, once all of it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from signalbox_cli.stack.log_groups import LogReader, find_groups
from signalbox_cli.target.pages import RUNS, fetch_pages
from signalbox_cli.target.target import Target
from signalbox_cli.views.log_line import LogRecord
from signalbox_cli.views.tick_page import Before, TickResult, caused


def look_before(target: Target) -> Before:
    """Note the newest run in the ledger. Call this before anything is fired."""
    newest, _ = fetch_pages(target, RUNS, 1)
    return Before(last_id=newest[0]["id"] if newest else 0)


def gather(
    target: Target,
    fired: Sequence[Mapping[str, Any]],
    before: Before,
    *,
    at: datetime,  # the instant that rules were fired for
    began: datetime,  # when they were fired
    idle: bool,
) -> TickResult:
    """Gather the runs, errors and numbers that followed."""
    oldest = min([*before.lost, before.last_id + 1])
    return TickResult(
        fired=fired,
        runs=caused(fetch_pages(target, RUNS, after_id=oldest - 1)[0], before, at),
        before=before,
        idle=idle,
        errors=_errors(target, began),
    )


def _errors(target: Target, since: datetime) -> list[LogRecord]:
    """Return reports of failed invocations that no run tells of: a crash at the start, or a refused payload."""
    records = LogReader(target.client("logs"), find_groups(target, None)).read(since)
    return [record for record in records if record.is_of_interest and record.is_report]
