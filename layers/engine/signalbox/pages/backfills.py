"""List backfills, and show one with its progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signalbox.pages.commands import command_of
from signalbox.pages.visit import Shown, Visit

ENDED = ("succeeded", "skipped", "failed", "cancelled")


def show_all(visit: Visit) -> Shown:
    params = visit.params("list_backfills", visit.query)
    found = visit.operate("list_backfills", **params)["backfills"]
    values = {"backfills": [(one, progress(one)) for one in found]}
    return Shown("backfills.html", "Backfills", values, [command_of("list_backfills", params)])


def show(visit: Visit) -> Shown:
    found = visit.operate("show_backfill", id=visit.in_path["id"])["backfill"]
    values = {"backfill": found, "progress": progress(found)}
    return Shown(
        "backfill.html", f"Backfill of {found['task']}", values, [command_of("show_backfill", {"id": found["id"]})]
    )


def progress(backfill: Mapping[str, Any]) -> dict[str, int]:
    """Return how many of its slots have ended, of how many."""
    slots, total = backfill["slots"], backfill["slots"]["total"]
    ended = sum(slots[status] for status in ENDED)
    return {"ended": ended, "total": total, "percent": 100 * ended // total if total else 100}
