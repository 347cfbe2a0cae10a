"""List jobs by filters, a page at a time, and preview what an action on all that match would change."""

from __future__ import annotations

from typing import Any

from signalbox.jobs.status import JobStatus
from signalbox.operate.filters import JobFilter
from signalbox.packs.job_type import Lane
from signalbox.pages.commands import command_of
from signalbox.pages.visit import Shown, Visit, moment

# Each action, its name on a button, and what it does.
ACTIONS = {
    "cancel_jobs": ("Cancel", "cancels waiting jobs, and asks running ones to stop"),
    "retry_jobs": ("Retry now", "starts jobs that wait for a retry or their time"),
    "pause": ("Pause", "starts them no more until they are resumed"),
    "resume": ("Resume", "lets paused jobs continue"),
}
_SHOWN = 50


def show(visit: Visit) -> Shown:
    asked = {name: text for name, text in visit.query.items() if name in (*JobFilter.model_fields, "before_id")}
    params = visit.params("list_jobs", asked)
    listed: dict[str, Any] = {"jobs": [], "next": None}
    if not visit.refused:  # what refuses a form may be the filter itself
        listed = visit.operate("list_jobs", limit=_SHOWN, **params)
    answer = visit.preview_of(*ACTIONS)
    preview = answer and answer["dry_run"]
    confirmed = _confirmed(visit, preview["as_of"]) if preview else {}
    chosen = {name: text for name, text in asked.items() if name != "before_id"}
    fields = {name: found.description for name, found in JobFilter.model_fields.items() if name != "ids"}
    values = {
        "listed": listed,
        "chosen": chosen,
        "fields": fields,
        "types": sorted(one["name"] for one in visit.operate("list_job_types")["job_types"]),
        "statuses": list(JobStatus),
        "lanes": list(Lane),
        "actions": ACTIONS,
        "preview": preview,
        "confirmed": confirmed,
    }
    commands = [command_of("list_jobs", params)]
    if preview:
        ids = [name.removeprefix("id.") for name in confirmed if name.startswith("id.")]
        commands.append(command_of(visit.action, visit.params(visit.action, confirmed) | ({"ids": ids} if ids else {})))
    return Shown("jobs.html", "Jobs", values, commands)


def _confirmed(visit: Visit, as_of: str) -> dict[str, str]:
    """Return the fields that carry out what the preview has shown: none of the jobs that were submitted after it."""
    fields = {name: text for name, text in visit.form.items() if name not in ("_form", "_next", "dry_run", "reason")}
    if not any(name.startswith("id.") for name in fields):
        fields.setdefault("until", as_of)
    return fields | {name: moment(fields[name], visit.clock) for name in ("since", "until") if name in fields}
