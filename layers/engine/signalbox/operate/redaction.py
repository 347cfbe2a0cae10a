"""Hide the values of payload fields that a job type declares sensitive, wherever an operator sees a payload."""

from __future__ import annotations

from typing import Any

from signalbox.errors import JobRefused
from signalbox.operate.filters import JobFilter
from signalbox.packs.registries import JobTypeRegistry

REDACTED = "[redacted]"


def refuse_sensitive(job_types: JobTypeRegistry, job_filter: JobFilter) -> None:
    """Refuse a search by a sensitive field: one who may not see a value could guess it so."""
    known = job_types.by_name.get(job_filter.job_type or "")
    for name in sorted(known.type.sensitive & (job_filter.payload or {}).keys()) if known else ():
        raise JobRefused(f"field '{name}' of job type '{job_filter.job_type}' is sensitive: jobs can't be found by it")


def redact_payload(job_types: JobTypeRegistry, row: dict[str, Any], field: str = "payload") -> dict[str, Any]:
    """Return a row that has a job type and a payload, with the values of sensitive fields replaced."""
    known = job_types.by_name.get(row["job_type"])
    payload = row[field]
    if known is None or not known.type.sensitive or not isinstance(payload, dict):
        return row
    shown = {name: REDACTED if name in known.type.sensitive else value for name, value in payload.items()}
    return row | {field: shown}
