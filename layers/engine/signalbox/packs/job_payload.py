"""The payloads of jobs, checked when a job is submitted and again when it is claimed, maybe by newer code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from signalbox.errors import JobRefused
from signalbox.packs.payload import fault_of

if TYPE_CHECKING:
    from signalbox.packs.registries import RegisteredJobType

# More belongs into S3, with a pointer here: each state of a job writes its row anew.
MOST_BYTES = 200_000


class JobPayload(BaseModel):
    """What every job's payload has in common: no unknown fields, and no change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def check_payload(known: RegisteredJobType, payload: object) -> JobPayload:
    """The payload as its type's model, or one error that names each field that is wrong, and no value."""
    try:
        return known.model.model_validate(payload)
    except ValidationError as error:
        faults = "; ".join(fault_of(known.model, dict(fault)) for fault in error.errors(include_url=False))
        raise JobRefused(f"payload of job type '{known.type.name}' refused: {faults}") from None


def upgrade_payload(known: RegisteredJobType, payload: dict[str, Any], version: int) -> JobPayload:
    """A stored payload as the model of today."""
    if version < known.type.version and known.upgrade is not None:
        payload = known.upgrade(payload, version)
    return check_payload(known, payload)
