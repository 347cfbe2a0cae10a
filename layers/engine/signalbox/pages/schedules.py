"""Show the schedules of jobs in words and two zones, and the pauses, caps and rates with each tenant's share."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from signalbox.pages.commands import command_of
from signalbox.pages.visit import Shown, Visit


def show(visit: Visit) -> Shown:
    params = visit.params("list_schedules", visit.query)
    found = visit.operate("list_schedules", **params)
    answer = visit.preview_of("create_schedule")
    preview = answer and answer["dry_run"]
    values = {
        "schedules": [(one, _there(one["next_run_at"], one["timezone"])) for one in found["schedules"]],
        "next": found["next"],
        "types": sorted(one["name"] for one in visit.operate("list_job_types")["job_types"]),
        "preview": preview,
        "next_runs": [(run, _there(run, preview["timezone"])) for run in preview["next_runs"]] if preview else [],
    }
    return Shown("schedules.html", "Schedules", values, [command_of("list_schedules", params)])


def show_caps(visit: Visit) -> Shown:
    found = visit.operate("list_controls", tenants=True)
    busy = sum(one["waiting"] + one["running"] for one in found["by_tenant"]) or 1
    values = {
        "controls": found["controls"],
        "tenants": [(one, round(100 * (one["waiting"] + one["running"]) / busy)) for one in found["by_tenant"]],
    }
    return Shown("caps.html", "Pauses, caps and rates", values, [command_of("list_controls", {})])


def _there(at: str | None, zone: str) -> str:
    """Return an instant by the clocks of a zone, with its name."""
    return f"{datetime.fromisoformat(at).astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} {zone}" if at else ""
