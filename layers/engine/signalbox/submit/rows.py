"""Prepare a new job's row for the table: by INSERT as JSON, or by COPY as a line.

What the jobs of one submit share is computed once: a hundred thousand jobs often differ only in their payload.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple


@dataclass(frozen=True)
class SharedColumns:
    """Hold the columns that jobs may share, by name, in COPY's order."""

    columns: Mapping[str, Any]

    @cached_property
    def as_json(self) -> str:
        """Return the members of a JSON object; metadata are JSON already."""
        plain = {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in self.columns.items()
            if value is not None and name != "metadata"
        }
        metadata = self.columns["metadata"]
        return json.dumps(plain)[1:-1] + (f',"metadata":{metadata}' if metadata else "")

    @cached_property
    def answer(self) -> tuple[str, str, str]:
        """Return its type, lane and status, as a submit does."""
        columns = self.columns
        return columns["job_type"], columns["lane"], columns["status"]

    @cached_property
    def as_line(self) -> str:
        return "\t".join(map(_copy_field, self.columns.values())) + "\n"


class JobRow(NamedTuple):
    """Hold a job's own columns first, in COPY's order. It is a tuple, since there may be very many."""

    id: str
    payload: str  # JSON
    idempotency_key: str | None
    subject_id: str | None
    correlation_id: str | None
    tenant: str | None
    common: SharedColumns
    replace_key: str | None = None  # a job with one does not go by COPY

    def as_json(self) -> str:
        """Return the row as JSON. The payload goes in as it is, not as a quoted text."""
        names = ("id", "idempotency_key", "subject_id", "correlation_id", "tenant", "replace_key")
        own = {name: getattr(self, name) for name in names}
        return f'{json.dumps(own)[:-1]},"payload":{self.payload},{self.common.as_json}}}'

    def as_line(self) -> str:
        id_, payload, key, subject, correlation, tenant, common, _ = self
        if "\\" in payload:  # JSON has no other character that COPY would interpret
            payload = payload.replace("\\", "\\\\")
        if key is None and subject is None and correlation is None and tenant is None:
            return f"{id_}\t{payload}\t\\N\t\\N\t\\N\t\\N\t{common.as_line}"
        own = "\t".join([_copy_field(one) if one is not None else "\\N" for one in (key, subject, correlation, tenant)])
        return f"{id_}\t{payload}\t{own}\t{common.as_line}"


def _copy_field(value: Any) -> str:
    if value is None:
        return "\\N"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, list):
        value = "{" + ",".join(f'"{_quoted(str(part))}"' for part in value) + "}"
    text = str(value)
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _quoted(part: str) -> str:
    return part.replace("\\", "\\\\").replace('"', '\\"')
