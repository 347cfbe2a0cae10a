"""Pauses and caps, as an operator sets, lifts and lists them: of a type, lane, tenant or key, or of single jobs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from signalbox.errors import ControlRefused
from signalbox.invocation import Invocation, Tools
from signalbox.operate import caps
from signalbox.operate import pause as pausing
from signalbox.operate.audit import Orderer
from signalbox.operate.caps import Cap, Controlled, Kind
from signalbox.operate.listing import list_jobs
from signalbox.operations.orders import JobOrder, answer_of, order_jobs, preview_of, terms_of
from signalbox.packs.payload import Payload


class _Hold(JobOrder):
    """A whole type, lane, tenant or key by `kind` and `key`; or jobs, by ids or filters."""

    kind: Kind | None = None
    key: str | None = None

    @property
    def controlled(self) -> Controlled | None:
        if self.kind is None and self.key is None:
            return None
        if self.kind is None or self.key is None:
            raise ControlRefused("a pause of many jobs needs both: kind (type, lane, tenant or key) and key, its name")
        if self.selection.given:
            raise ControlRefused(f"name {self.kind} '{self.key}', or jobs by ids and filters: not both in one order")
        return Controlled(self.kind, self.key)


class Pause(_Hold):
    """No job of it begins until it is resumed; those at work go on. It may be yet to come: then it is not `known`."""


class Resume(_Hold):
    """Its jobs go on, unless another pause holds them."""


class ListControls(Payload):
    """No params."""


class SetCap(Payload):
    """The cap as a whole: without any number it is lifted."""

    kind: Literal["type", "lane", "tenant", "key"]
    key: str
    max_running: int | None = Field(None, ge=0, le=1_000_000)
    rate: int | None = Field(None, ge=1, le=1_000_000)
    per_seconds: int | None = Field(None, ge=1, le=86_400)
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)


def pause(tools: Tools, params: Pause, invocation: Invocation) -> dict[str, Any]:
    what = params.controlled
    if what is None:
        return order_jobs(tools, params, invocation, pausing.pause)
    db, catalogue = tools.database.connection(), tools.catalogue
    if params.dry_run:
        what.require_known(db, catalogue)
        return {"dry_run": preview_of(tools, what.selection)}
    caps.pause_control(db, catalogue, what, by=params.orderer)
    return {**_shown(tools, what), "known": what.kind in ("type", "lane") or bool(list_jobs(db, what.selection, 1))}


def resume(tools: Tools, params: Resume, invocation: Invocation) -> dict[str, Any]:
    what = params.controlled
    if what is None:
        return order_jobs(tools, params, invocation, pausing.resume)
    db, catalogue = tools.database.connection(), tools.catalogue
    if params.dry_run:
        what.require_known(db, catalogue)
        return {"dry_run": preview_of(tools, what.selection)}
    done = caps.resume_control(db, catalogue, what, terms_of(tools, params.orderer, invocation))
    tools.courier.send(caps.next_held(db, [what.name]))
    return {**_shown(tools, what), **answer_of(tools, done)}


def list_controls(tools: Tools, _: ListControls, __: Invocation) -> dict[str, Any]:
    return {"controls": caps.list_controls(tools.database.connection())}


def set_cap(tools: Tools, params: SetCap, _: Invocation) -> dict[str, Any]:
    what = Controlled(params.kind, params.key)
    cap = Cap(params.max_running, params.rate, params.per_seconds)
    db, by = tools.database.connection(), Orderer(params.by, params.reason)
    tools.courier.send(caps.set_cap(db, tools.catalogue, what, cap, by=by))
    return _shown(tools, what)


def _shown(tools: Tools, what: Controlled) -> dict[str, Any]:
    """The control as it is now; None where nothing is paused or capped any more."""
    found = caps.list_controls(tools.database.connection())
    return {"control": next((one for one in found if (one["kind"], one["key"]) == (what.kind, what.key)), None)}
