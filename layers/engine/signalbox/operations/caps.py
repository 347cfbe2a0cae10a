"""Set, lift and list pauses and caps for an operator: of a type, lane, tenant or key, or of single jobs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from signalbox.errors import CapRefused, Forbidden
from signalbox.invocation import Invocation, Resources
from signalbox.operate import caps
from signalbox.operate import pause as pausing
from signalbox.operate.audit import Actor
from signalbox.operate.caps import Cap, CapTarget, Kind
from signalbox.operate.listing import list_jobs
from signalbox.operations.bulk import BulkJobParams, answer_of, bulk_context, preview_of, run_bulk_action
from signalbox.packs.payload import Payload
from signalbox.publish.held_jobs import next_held
from signalbox.stats.statistics import list_tenants


class _PauseParams(BulkJobParams):
    """Name a whole type, lane, tenant or key by `kind` and `key`; or jobs, by ids or filters."""

    kind: Kind | None = None
    key: str | None = None

    @property
    def target(self) -> CapTarget | None:
        if self.kind is None and self.key is None:
            return None
        if self.kind is None or self.key is None:
            raise CapRefused("this needs both kind (type, lane, tenant or key) and key, its name")
        if self.given:
            raise CapRefused(f"name {self.kind} '{self.key}', or jobs by ids and filters: not both at once")
        return CapTarget(self.kind, self.key)


class Pause(_PauseParams):
    """Start none of its jobs until it is resumed; running ones continue. A name without jobs yet is not `known`."""


class Resume(_PauseParams):
    """Let its jobs continue, unless another pause holds them."""


class ListControls(Payload):
    """List what is paused or capped; with `tenants` also what waits and runs of each tenant."""

    tenants: bool = False


class SetCap(Payload):
    """Set the cap as a whole: without any number it is lifted."""

    kind: Literal["type", "lane", "tenant", "key"]
    key: str
    max_running: int | None = Field(None, ge=0, le=1_000_000)
    rate: int | None = Field(None, ge=1, le=1_000_000)
    per_seconds: int | None = Field(None, ge=1, le=86_400)
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)


def pause(resources: Resources, params: Pause, invocation: Invocation) -> dict[str, Any]:
    what = _target(params, invocation)
    if what is None:
        return run_bulk_action(resources, params, invocation, pausing.pause)
    db, job_types = resources.database.connection(), resources.job_types
    if params.dry_run:
        what.require_known(db, job_types)
        return {"dry_run": preview_of(resources, what.job_filter)}
    caps.pause_target(db, job_types, what, by=params.actor)
    return {
        **_shown(resources, what),
        "known": what.kind in ("type", "lane") or bool(list_jobs(db, what.job_filter, 1)),
    }


def resume(resources: Resources, params: Resume, invocation: Invocation) -> dict[str, Any]:
    what = _target(params, invocation)
    if what is None:
        return run_bulk_action(resources, params, invocation, pausing.resume)
    db, job_types = resources.database.connection(), resources.job_types
    if params.dry_run:
        what.require_known(db, job_types)
        return {"dry_run": preview_of(resources, what.job_filter)}
    done = caps.resume_target(db, job_types, what, bulk_context(resources, params.actor, invocation))
    resources.publisher.send(next_held(db, [what.name]))
    return {**_shown(resources, what), **answer_of(resources, done)}


def list_controls(resources: Resources, params: ListControls, invocation: Invocation) -> dict[str, Any]:
    db = resources.database.connection()
    by_tenant = {"by_tenant": list_tenants(db, now=invocation.clock)} if params.tenants else {}
    return {"controls": caps.list_caps(db)} | by_tenant


def set_cap(resources: Resources, params: SetCap, _: Invocation) -> dict[str, Any]:
    what = CapTarget(params.kind, params.key)
    cap = Cap(params.max_running, params.rate, params.per_seconds)
    db, by = resources.database.connection(), Actor(params.by, params.reason)
    resources.publisher.send(caps.set_cap(db, resources.job_types, what, cap, by=by))
    return _shown(resources, what)


def _target(params: _PauseParams, invocation: Invocation) -> CapTarget | None:
    if invocation.tenant is not None and (params.kind or params.key):
        raise Forbidden(f"this token is bound to the tenant '{invocation.tenant}': name jobs, by ids or filters")
    return params.target


def _shown(resources: Resources, what: CapTarget) -> dict[str, Any]:
    """Return the control as it is now, or None where nothing is paused or capped any more."""
    found = caps.list_caps(resources.database.connection())
    return {"control": next((one for one in found if (one["kind"], one["key"]) == (what.kind, what.key)), None)}
