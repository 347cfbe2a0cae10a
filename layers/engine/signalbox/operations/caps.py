"""Pauses and caps, as an operator sets, lifts and lists them: of a type, lane, tenant or key, or of single jobs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from signalbox.app import Engine
from signalbox.errors import ControlRefused
from signalbox.invocation import Invocation
from signalbox.operate import caps
from signalbox.operate import pause as pausing
from signalbox.operate.audit import Orderer
from signalbox.operate.caps import Cap, Controlled, Kind
from signalbox.operate.listing import list_jobs
from signalbox.operations.orders import JobOrder, answer_of, order_jobs, preview_of, terms_of
from signalbox.runtime.payload import Payload


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


def pause(engine: Engine, params: Pause, invocation: Invocation) -> dict[str, Any]:
    what = params.controlled
    if what is None:
        return order_jobs(engine, params, invocation, pausing.pause)
    db, catalogue = engine.tools.database.connection(), engine.tools.catalogue
    if params.dry_run:
        what.require_known(db, catalogue)
        return {"dry_run": preview_of(engine, what.selection)}
    caps.pause_control(db, catalogue, what, by=params.orderer)
    return {**_shown(engine, what), "known": what.kind in ("type", "lane") or bool(list_jobs(db, what.selection, 1))}


def resume(engine: Engine, params: Resume, invocation: Invocation) -> dict[str, Any]:
    what = params.controlled
    if what is None:
        return order_jobs(engine, params, invocation, pausing.resume)
    db, catalogue = engine.tools.database.connection(), engine.tools.catalogue
    if params.dry_run:
        what.require_known(db, catalogue)
        return {"dry_run": preview_of(engine, what.selection)}
    done = caps.resume_control(db, catalogue, what, terms_of(engine, params.orderer, invocation))
    engine.tools.courier.send(caps.next_held(db, [what.name]))
    return {**_shown(engine, what), **answer_of(engine, done)}


def list_controls(engine: Engine, _: ListControls, __: Invocation) -> dict[str, Any]:
    return {"controls": caps.list_controls(engine.tools.database.connection())}


def set_cap(engine: Engine, params: SetCap, _: Invocation) -> dict[str, Any]:
    what = Controlled(params.kind, params.key)
    cap = Cap(params.max_running, params.rate, params.per_seconds)
    db, by = engine.tools.database.connection(), Orderer(params.by, params.reason)
    engine.tools.courier.send(caps.set_cap(db, engine.tools.catalogue, what, cap, by=by))
    return _shown(engine, what)


def _shown(engine: Engine, what: Controlled) -> dict[str, Any]:
    """The control as it is now; None where nothing is paused or capped any more."""
    found = caps.list_controls(engine.tools.database.connection())
    return {"control": next((one for one in found if (one["kind"], one["key"]) == (what.kind, what.key)), None)}
