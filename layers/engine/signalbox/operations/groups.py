"""Show and seal groups of jobs for an operator."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import Field

from signalbox.errors import PayloadRefused
from signalbox.invocation import Invocation, Resources
from signalbox.operate import audit
from signalbox.operations.submit import JobParams, new_job
from signalbox.packs.payload import Payload
from signalbox.postgres.json_rows import json_row
from signalbox.submit import groups
from signalbox.submit.groups import Group


class ShowGroup(Payload):
    id: str = Field(min_length=1, max_length=200)


class SealGroup(Payload):
    """Seal a group. `completion` is submitted with it, and begins once all of the group has ended."""

    id: str = Field(min_length=1, max_length=200)
    completion: JobParams | None = None
    by: str = Field("unnamed", min_length=1, max_length=200)
    reason: str | None = Field(None, max_length=1000)


def show_group(resources: Resources, params: ShowGroup, _: Invocation) -> dict[str, Any]:
    return _shown(groups.show_group(resources.database.connection(), params.id))


def seal_group(resources: Resources, params: SealGroup, invocation: Invocation) -> dict[str, Any]:
    """Seal the group, which takes no more jobs from now on."""
    if params.completion is not None and params.completion.ref is not None:
        why = "field 'completion.ref' names a job within a batch: a completion needs none"
        raise PayloadRefused(why, [("completion.ref", why)])
    db = resources.database.connection()
    completion = None if params.completion is None else new_job(params.completion, {}, params.by)
    with db.transaction():
        was_sealed = groups.show_group(db, params.id).sealed
        group, released = groups.seal_group(db, resources.job_types, params.id, invocation.clock, completion)
        if not was_sealed:
            audit.note(db, audit.Actor(params.by, params.reason), "group.seal", kind="group", id_=params.id)
    resources.publisher.send_due(db, released)
    return _shown(group)


def _shown(group: Group) -> dict[str, Any]:
    return {"group": json_row(asdict(group)) | {"left": group.left, "percent": group.percent}}
