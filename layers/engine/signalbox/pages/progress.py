"""List backfills and bulk actions, and show how far one is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signalbox.pages.commands import command_of
from signalbox.pages.visit import Shown, Visit

ENDED = ("succeeded", "skipped", "failed", "cancelled")


def show_backfills(visit: Visit) -> Shown:
    params = visit.params("list_backfills", visit.query)
    found = visit.operate("list_backfills", **params)["backfills"]
    values = {"backfills": [(one, progress_of(one)) for one in found]}
    return Shown("backfills.html", "Backfills", values, [command_of("list_backfills", params)])


def show_backfill(visit: Visit) -> Shown:
    found = visit.operate("show_backfill", id=visit.in_path["id"])["backfill"]
    values = {"backfill": found, "progress": progress_of(found)}
    return Shown(
        "backfill.html", f"Backfill of {found['task']}", values, [command_of("show_backfill", {"id": found["id"]})]
    )


def progress_of(backfill: Mapping[str, Any]) -> dict[str, int]:
    """Return how many of its slots have ended, of how many."""
    slots, total = backfill["slots"], backfill["slots"]["total"]
    ended = sum(slots[status] for status in ENDED)
    return {"ended": ended, "total": total, "percent": 100 * ended // total if total else 100}


def show_bulk_actions(visit: Visit) -> Shown:
    params = visit.params("list_bulk_actions", visit.query)
    found = visit.operate("list_bulk_actions", **params)["bulk_actions"]
    return Shown("bulk_actions.html", "Bulk actions", {"actions": found}, [command_of("list_bulk_actions", params)])


def show_bulk_action(visit: Visit) -> Shown:
    found = visit.operate("show_bulk_action", id=visit.in_path["id"])["bulk_action"]
    done = sum(found["counts"].values())
    percent = 100 * done // (done + found["left"]) if done + found["left"] else 100
    values = {"action": found, "done": done, "percent": percent}
    command = command_of("show_bulk_action", {"id": found["id"]})
    return Shown("bulk_action.html", f"Bulk action: {found['action'].replace('_', ' ')}", values, [command])
