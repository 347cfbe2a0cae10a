"""Serve the operator's operations, for the command line, for programs, and for the HTTP API and its pages.

Like tasks they are named by strings and imported when first asked for. They leave no row in the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic import Field

from signalbox.access.caller import Role
from signalbox.errors import PayloadRefused
from signalbox.operate.short_ids import IdParams, complete_ids
from signalbox.packs.payload import Payload, read_payload
from signalbox.packs.suggest import nearest

if TYPE_CHECKING:
    from signalbox.invocation import Invocation, Resources


@dataclass(frozen=True, slots=True)
class Operation:
    """Describe one operation: a function of its name in a module, with a model of its params named in capitals.

    With `per_tenant` a caller who is bound to a tenant may ask for it: `tenant` in its params is theirs then, and ids
    are those of their jobs and dead letters.
    """

    name: str
    module: str
    role: Role
    per_tenant: bool = False

    @property
    def model(self) -> type[Payload]:
        name = "".join(word.capitalize() for word in self.name.split("_"))
        model: type[Payload] = getattr(self._module, name)
        return model

    def run(self, resources: Resources, given: dict[str, Any], invocation: Invocation) -> dict[str, Any]:
        """Check who asks for what, and return the answer."""
        if caller := invocation.caller:
            caller.require(self.name, self.role, per_tenant=self.per_tenant)
        params = read_payload(self.model, given, f"params of operation '{self.name}'")
        params = _within_tenant(params, invocation.tenant)
        if isinstance(params, IdParams):
            params = complete_ids(resources.database.connection(), params, invocation.tenant)
        answer: dict[str, Any] = getattr(self._module, self.name)(resources, params, invocation)
        return answer

    @property
    def _module(self) -> Any:
        return import_module(f"signalbox.operations.{self.module}")


_VIEWER, _OPERATOR = Role.VIEWER, Role.OPERATOR
OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("list_tasks", "registered", _VIEWER),
        Operation("run_task", "registered", _OPERATOR),
        Operation("list_runs", "ledger", _VIEWER),
        Operation("show_slots", "ledger", _VIEWER),
        Operation("find_gap", "ledger", _VIEWER),
        Operation("create_backfill", "backfills", _OPERATOR),
        Operation("list_backfills", "backfills", _VIEWER),
        Operation("show_backfill", "backfills", _VIEWER),
        Operation("pause_backfill", "backfills", _OPERATOR),
        Operation("resume_backfill", "backfills", _OPERATOR),
        Operation("change_backfill", "backfills", _OPERATOR),
        Operation("cancel_backfill", "backfills", _OPERATOR),
        Operation("examine", "check", _VIEWER),
        Operation("submit_jobs", "submit", _OPERATOR, per_tenant=True),
        Operation("list_jobs", "jobs", _VIEWER, per_tenant=True),
        Operation("show_job", "jobs", _VIEWER, per_tenant=True),
        Operation("show_progress", "jobs", _VIEWER, per_tenant=True),
        Operation("explain_job", "jobs", _VIEWER, per_tenant=True),
        Operation("cancel_jobs", "jobs", _OPERATOR, per_tenant=True),
        Operation("retry_jobs", "jobs", _OPERATOR, per_tenant=True),
        Operation("send_signal", "jobs", _OPERATOR),
        Operation("pause", "caps", _OPERATOR, per_tenant=True),
        Operation("resume", "caps", _OPERATOR, per_tenant=True),
        Operation("list_controls", "caps", _VIEWER),
        Operation("set_cap", "caps", _OPERATOR),
        Operation("list_bulk_actions", "bulk", _VIEWER, per_tenant=True),
        Operation("show_bulk_action", "bulk", _VIEWER, per_tenant=True),
        Operation("cancel_bulk_action", "bulk", _OPERATOR, per_tenant=True),
        Operation("list_job_types", "registered", _VIEWER, per_tenant=True),
        Operation("show_job_type", "registered", _VIEWER, per_tenant=True),
        Operation("list_schedules", "schedules", _VIEWER),
        Operation("create_schedule", "schedules", _OPERATOR),
        Operation("pause_schedule", "schedules", _OPERATOR),
        Operation("resume_schedule", "schedules", _OPERATOR),
        Operation("delete_schedule", "schedules", _OPERATOR),
        Operation("list_dead_letters", "dead_letters", _VIEWER, per_tenant=True),
        Operation("show_dead_letter", "dead_letters", _VIEWER, per_tenant=True),
        Operation("triage_dead_letters", "dead_letters", _OPERATOR, per_tenant=True),
        Operation("redrive", "dead_letters", _OPERATOR, per_tenant=True),
        Operation("show_group", "groups", _VIEWER),
        Operation("seal_group", "groups", _OPERATOR),
        Operation("show_statistics", "statistics", _VIEWER, per_tenant=True),
        Operation("show_health", "statistics", _VIEWER),
        Operation("show_metrics", "statistics", _VIEWER),
        Operation("create_token", "tokens", _OPERATOR),
        Operation("list_tokens", "tokens", _OPERATOR),
        Operation("revoke_token", "tokens", _OPERATOR),
    )
}


class OperationPayload(Payload):
    """Ask for one of the operator's operations, as the command line does."""

    operation: str = Field(min_length=1)
    params: dict[str, Any] = Field(default_factory=dict)


def operate(resources: Resources, event: object, invocation: Invocation) -> dict[str, Any]:
    """Run the operation that a direct invocation asks for, and return its answer."""
    payload = read_payload(OperationPayload, event)
    name = payload.operation
    if name not in OPERATIONS:
        raise PayloadRefused(f"operation '{name}' is not known{nearest(name, OPERATIONS)}")
    return {"operation": name, **OPERATIONS[name].run(resources, payload.params, invocation)}


def _within_tenant(params: Payload, tenant: str | None) -> Payload:
    """Return the params as a caller who is bound to this tenant may ask for them."""
    if tenant is None or "tenant" not in type(params).model_fields:
        return params
    asked = getattr(params, "tenant", None)
    if asked not in (None, tenant):
        raise PayloadRefused(f"field 'tenant': this token is bound to the tenant '{tenant}'")
    return params.model_copy(update={"tenant": tenant})
