"""Serve the operator's operations: what the command line asks the api, so that nobody needs database access.

Like tasks they are named by strings and imported when first asked for. They leave no row in the ledger.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic import Field

from signalbox.errors import PayloadRefused
from signalbox.operate.short_ids import IdParams, complete_ids
from signalbox.packs.payload import Payload, read_payload
from signalbox.packs.suggest import nearest

if TYPE_CHECKING:
    from signalbox.invocation import Invocation, Resources

# Each is a function of its name in its module, with a params model of its name in capitals: list_runs, ListRuns.
OPERATIONS = {
    "list_tasks": "signalbox.operations.tasks",
    "list_runs": "signalbox.operations.runs",
    "show_slots": "signalbox.operations.slots",
    "create_backfill": "signalbox.operations.backfills",
    "list_backfills": "signalbox.operations.backfills",
    "show_backfill": "signalbox.operations.backfills",
    "pause_backfill": "signalbox.operations.backfills",
    "resume_backfill": "signalbox.operations.backfills",
    "cancel_backfill": "signalbox.operations.backfills",
    "examine": "signalbox.operations.check",
    "submit_jobs": "signalbox.operations.submit",
    "list_jobs": "signalbox.operations.jobs",
    "show_job": "signalbox.operations.jobs",
    "cancel_jobs": "signalbox.operations.jobs",
    "retry_jobs": "signalbox.operations.jobs",
    "pause": "signalbox.operations.caps",
    "resume": "signalbox.operations.caps",
    "list_controls": "signalbox.operations.caps",
    "set_cap": "signalbox.operations.caps",
    "list_schedules": "signalbox.operations.schedules",
    "create_schedule": "signalbox.operations.schedules",
    "pause_schedule": "signalbox.operations.schedules",
    "resume_schedule": "signalbox.operations.schedules",
    "delete_schedule": "signalbox.operations.schedules",
    "list_dead_letters": "signalbox.operations.dead_letters",
    "show_dead_letter": "signalbox.operations.dead_letters",
    "triage_dead_letters": "signalbox.operations.dead_letters",
    "redrive": "signalbox.operations.dead_letters",
    "show_group": "signalbox.operations.groups",
    "seal_group": "signalbox.operations.groups",
    "show_statistics": "signalbox.operations.statistics",
    "show_health": "signalbox.operations.statistics",
}


class OperationPayload(Payload):
    """Ask for one of the operator's operations, as the command line does."""

    operation: str = Field(min_length=1)
    params: dict[str, Any] = Field(default_factory=dict)


def operate(resources: Resources, event: object, invocation: Invocation) -> dict[str, Any]:
    """Run one operation, and return its answer."""
    payload = read_payload(OperationPayload, event)
    name = payload.operation
    if name not in OPERATIONS:
        raise PayloadRefused(f"operation '{name}' is not known{nearest(name, OPERATIONS)}")
    module = import_module(OPERATIONS[name])
    model = getattr(module, "".join(word.capitalize() for word in name.split("_")))
    params = read_payload(model, payload.params, f"params of operation '{name}'")
    if isinstance(params, IdParams):
        params = complete_ids(resources.database.connection(), params)
    answer: dict[str, Any] = getattr(module, name)(resources, params, invocation)
    return {"operation": name, **answer}
