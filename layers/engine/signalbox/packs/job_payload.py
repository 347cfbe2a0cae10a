"""Check the payloads of jobs when a job is submitted and again when it is claimed, maybe by newer code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from signalbox.errors import JobRefused
from signalbox.packs.payload import fault_of

if TYPE_CHECKING:
    from signalbox.packs.registries import RegisteredJobType

# More belongs in S3, with a pointer here: each change of a job's state writes its whole row.
MOST_BYTES = 200_000


class JobPayload(BaseModel):
    """Give every job's payload the same rules: no unknown fields, and no change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def check_payload(known: RegisteredJobType, payload: object) -> JobPayload:
    """Return the payload as its type's model, or raise one error that names each wrong field, and no value."""
    try:
        return known.model.model_validate(payload)
    except ValidationError as error:
        faults = "; ".join(fault_of(known.model, dict(fault)) for fault in error.errors(include_url=False))
        raise JobRefused(f"payload of job type '{known.type.name}' refused: {faults}") from None


def upgrade_payload(known: RegisteredJobType, payload: dict[str, Any], version: int) -> JobPayload:
    """Return a stored payload as today's model."""
    if version < known.type.version and known.upgrade is not None:
        payload = known.upgrade(payload, version)
    return check_payload(known, payload)
