"""Which jobs an operator means: by their ids, or by what they have in common. All that is given must hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from signalbox.errors import IdRefused, JobRefused
from signalbox.postgres.uuid7 import first_id

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# An id is made by its submitter's clock, created_at by the database's.
_CLOCKS_APART = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """A filter over jobs; `since` and `until` go by when they were created."""

    ids: Sequence[str] | None = None
    status: str | None = None
    job_type: str | None = None
    lane: str | None = None
    tenant: str | None = None
    cap_key: str | None = None
    group: str | None = None
    tag: str | None = None
    subject: str | None = None
    correlation: str | None = None
    schedule: str | None = None  # its id or its name
    parent: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        for id_ in (*(self.ids or ()), *([self.parent] if self.parent else [])):
            require_id(id_)

    @property
    def given(self) -> dict[str, Any]:
        """What was asked for, as the audit log keeps it."""
        asked = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in asked.items()
            if value is not None
        }

    @property
    def values(self) -> dict[str, Any]:
        """As the queries take them."""
        asked = {one.name: getattr(self, one.name) for one in fields(self)}
        ids = None if self.ids is None else list(self.ids)
        return {**asked, "ids": ids, "first_id": self.since and first_id(self.since - _CLOCKS_APART)}

    def require_any(self) -> None:
        """An order that named nothing would concern every job there is."""
        if not self.given.keys() - {"until"}:
            raise JobRefused("this would concern every job: name ids, or at least one filter such as type or tenant")


def require_id(id_: str) -> str:
    """The id, or an error that says what ids look like."""
    if not _ID.fullmatch(id_):
        raise IdRefused(f"'{id_[:60]}' is not the id of a job, which is a UUID; `signalbox jobs` lists them")
    return id_
