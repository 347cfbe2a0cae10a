"""Define the payload of a pass, what it hands on to the next one, and what all passes work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from records.intake.shell_file import ShellFile
from records.passes.pieces import Place
from records.passes.usage import Usage
from signalbox import Cancelled, Completed, JobContext, JobPayload, Permanent
from signalbox.packs.refusals import refuse

_HANDED_ON = {
    "job_lane",
    "raw_file",
    "patient_id",
    "shell_file_id",
    "correlation_id",
    "ocr_spatial_data",
    "document_metadata",
    "narrative_id",
}


class DocumentMetadata(BaseModel):
    """Say what kind of document it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mime_type: str
    page_count: Annotated[int, Field(ge=1)]


class AiProcessing(JobPayload):
    """Say which pass, of which session of which file, and how much there is to read."""

    pass_number: Literal[1, 2, 3] = 1
    job_lane: Literal["ai_queue_simple", "ai_queue_complex"] = "ai_queue_simple"
    raw_file: str
    patient_id: UUID
    shell_file_id: UUID
    correlation_id: str | None = None  # passed on, and no more
    estimated_tokens: Annotated[int, Field(ge=0)] = 0
    ocr_spatial_data: str  # the key of the file's text
    document_metadata: DocumentMetadata
    processing_session_id: UUID
    narrative_id: UUID | None = None  # of an earlier narrative, which the new one supersedes


def for_next_pass(payload: AiProcessing) -> dict[str, Any]:
    """Return what the next pass's payload has of this one's."""
    return payload.model_dump(mode="json", include=_HANDED_ON)


@dataclass(frozen=True, slots=True)
class Session:
    """Join what each pass works on: its job, the file, and the session of both."""

    context: JobContext
    file: ShellFile
    payload: AiProcessing

    @property
    def id(self) -> str:
        return str(self.payload.processing_session_id)

    @property
    def values(self) -> dict[str, Any]:
        """Return what every query is given."""
        return {"file": self.file.id, "patient": self.file.patient_id, "session": self.id}


def ended() -> Cancelled:
    return Cancelled("the file is processed by another session now")


def truncated(place: Place, reason: str) -> Permanent:
    return refuse("OUTPUT_TRUNCATED", f"the model's answer was cut, {reason}, in piece {place.piece + 1}")


def completed(session: Session, usage: Usage, next_job_id: str | None, **found: Any) -> Completed:
    """Return the result of a pass."""
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return Completed({"pass_number": session.payload.pass_number, **tokens, "next_job_id": next_job_id, **found})
