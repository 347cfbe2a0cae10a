"""Select the jobs and the dead letters that an operator means: by their ids, or by what they have in common.

The operations take these models as they are, and the command line makes its options from their fields.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from signalbox.errors import JobRefused, PayloadRefused
from signalbox.operate.short_ids import IdFields, IdParams
from signalbox.packs.payload import Instant
from signalbox.postgres.uuid7 import first_id

# An id is made by its submitter's clock, created_at by the database's.
_CLOCKS_APART = timedelta(minutes=10)
_ANY_CLOCK = timedelta(days=1)
# A random id, as a submitter may choose, is mostly larger than any that is made in the next years.
_RANDOM = timedelta(days=3653)
_LONGEST_SEARCH = timedelta(days=1)  # from `since` on, of a filter by payload
_WITH_INDEX = ("group", "parent", "cap_key", "tenant")  # each with the id: a page is read along it
MOST_JOBS, MOST_DEAD_LETTERS = 1000, 500  # that one request may name; a filter may find more

LetterStatusName = Literal["pending", "investigating", "resolved", "ignored", "redriven"]


class JobFilter(IdParams):
    """Select the jobs that match every given field."""

    ID_FIELDS: ClassVar[IdFields] = (("ids", "job"), ("parent", "job"))
    ids: list[str] | None = Field(default=None, min_length=1, max_length=MOST_JOBS)
    job_type: str | None = Field(default=None, description="of this type")
    status: Literal["pending", "queued", "running", "completed", "failed", "cancelled", "paused"] | None = Field(
        default=None, description="in this state"
    )
    lane: Literal["high", "normal", "low", "heavy"] | None = Field(default=None, description="in this lane")
    tenant: str | None = Field(default=None, description="of this tenant")
    group: str | None = Field(default=None, description="of this group")
    tag: str | None = Field(default=None, description="with this tag")
    subject: str | None = Field(default=None, description="with this subject, the payload field that the type names")
    correlation: str | None = Field(default=None, description="with this correlation id")
    schedule: str | None = Field(default=None, description="of this schedule, by name or id")
    parent: str | None = Field(default=None, description="submitted by this job")
    cap_key: str | None = Field(default=None, description="with this cap key")
    since: Instant | None = Field(default=None, description="created at or after this time")
    until: Instant | None = Field(default=None, description="created at or before this time")
    payload: dict[str, str | int | bool] | None = Field(
        default=None, min_length=1, description="with these fields in the payload; with a type, and within a day"
    )

    @model_validator(mode="after")
    def _bound_payload(self) -> JobFilter:
        """Refuse a search in payloads, which no index helps, of more than one type and day."""
        if self.payload is not None and (self.job_type is None or self.since is None):
            raise PayloadRefused(
                "a filter by payload needs the type of the jobs, and since when: at most a day is searched"
            )
        return self

    @property
    def given(self) -> dict[str, Any]:
        """Return the given fields, as the audit log keeps them: of a payload, the names alone."""
        asked = {name: getattr(self, name) for name in JobFilter.model_fields}
        asked["payload"] = self.payload and sorted(self.payload)
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in asked.items()
            if value is not None
        }

    @property
    def values(self) -> dict[str, Any]:
        """Return the values of the fragment job_filter.sql."""
        asked = {name: getattr(self, name) for name in JobFilter.model_fields}
        if self.payload is not None and self.since is not None:
            end = self.since + _LONGEST_SEARCH
            asked |= {"payload": json.dumps(self.payload), "until": min(self.until or end, end)}
        page_by = next((name for name in _WITH_INDEX if asked[name] is not None), None)
        return {**asked, "page_by": page_by, "first_id": self.since and first_id(self.since - _CLOCKS_APART)}

    @property
    def id_ranges(self) -> list[tuple[str | None, str | None]]:
        """Return where ids may lie, the largest first: a page of long ago must not read all jobs since."""
        until = self.values["until"]
        if until is None:
            return [(None, None)]
        return [(first_id(until + _RANDOM), None), (None, first_id(until + _ANY_CLOCK))]

    def require_any(self) -> None:
        """Refuse a request without ids and filters: it would affect every job."""
        if not self.given.keys() - {"until"}:
            raise JobRefused("this would affect every job: give ids, or at least one filter such as type or tenant")


class DeadLetterFilter(IdParams):
    """Select the dead letters that match every given field."""

    ID_FIELDS = (("ids", "dead_letter"),)
    ids: list[str] | None = Field(default=None, min_length=1, max_length=MOST_DEAD_LETTERS)
    job_type: str | None = Field(default=None, description="of jobs of this type")
    status: LetterStatusName | list[LetterStatusName] | None = Field(default=None, description="in this state")
    fingerprint: str | None = Field(default=None, description="of this kind of failure; --kinds lists them")
    severity: Literal["info", "warning", "critical"] | None = Field(default=None, description="with this severity")
    source: Literal["job", "message", "invocation"] | None = Field(
        default=None, description="of a job, a message or an invocation"
    )
    tenant: str | None = Field(default=None, description="of this tenant")
    since: Instant | None = Field(default=None, description="failed at or after this time")
    until: Instant | None = Field(default=None, description="failed at or before this time")

    @property
    def values(self) -> dict[str, Any]:
        """Return the values of the fragment dead_letter_filter.sql."""
        asked = {name: getattr(self, name) for name in DeadLetterFilter.model_fields}
        status = asked.pop("status")
        return {**asked, "statuses": [status] if isinstance(status, str) else status}

    @property
    def kind(self) -> str | None:
        """Return the fingerprint where it alone is given: all dead letters of a kind are meant."""
        given = {name for name in DeadLetterFilter.model_fields if getattr(self, name) is not None}
        return self.fingerprint if given == {"fingerprint"} else None

    def require_any(self) -> None:
        """Refuse a request without ids and filters: it would affect every dead letter."""
        if all(value is None for name, value in self.values.items() if name not in ("statuses", "until")):
            raise PayloadRefused(
                "this would affect every dead letter: give ids, or a filter such as fingerprint or type"
            )
