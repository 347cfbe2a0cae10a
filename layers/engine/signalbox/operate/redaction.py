"""Hide the values of payload fields that a job type declares sensitive, wherever an operator sees a payload."""

from __future__ import annotations

from typing import Any

from signalbox.packs.registries import JobTypeRegistry

REDACTED = "[redacted]"


def redact_payload(job_types: JobTypeRegistry, row: dict[str, Any], field: str = "payload") -> dict[str, Any]:
    """Return a row that has a job type and a payload, with the values of sensitive fields replaced."""
    known = job_types.by_name.get(row["job_type"])
    payload = row[field]
    if known is None or not known.type.sensitive or not isinstance(payload, dict):
        return row
    shown = {name: REDACTED if name in known.type.sensitive else value for name, value in payload.items()}
    return row | {field: shown}
