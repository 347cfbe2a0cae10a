"""Find the file that a job is about, and check that the payload means the same one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from records.settings import RecordsSettings
from signalbox import JobContext, NewJob, Permanent
from signalbox.aws.bucket import Bucket
from signalbox.packs.refusals import refuse
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
PDF = "application/pdf"
IMAGES = ("image/png", "image/jpeg")


class NamesFile(Protocol):
    """Declare what both types' payloads say of the file."""

    shell_file_id: UUID
    patient_id: UUID
    raw_file: str


@dataclass(frozen=True, slots=True)
class ShellFile:
    """Hold what the product knows of an uploaded file."""

    id: str
    patient_id: str
    raw_file: str
    mime_type: str
    session_id: str | None


def find_file(context: JobContext) -> ShellFile:
    """Return the payload's file; refuse one that is not there, not the patient's, or of a type that is not read."""
    payload: NamesFile = context.payload
    row = context.db.execute(SQL["find"], {"file": payload.shell_file_id}).fetchone()
    if row is None or row[2] != payload.raw_file:
        raise refuse("NOT_FOUND", f"there is no file {payload.shell_file_id} with this raw_file")
    file = ShellFile(*row)
    if file.patient_id != str(payload.patient_id):
        raise refuse("PATIENT_MISMATCH", f"file {file.id} is not of patient {payload.patient_id}")
    if file.mime_type not in (PDF, *IMAGES):
        raise refuse("UNSUPPORTED_MIME_TYPE", f"file {file.id} is none of {', '.join((PDF, *IMAGES))}")
    return file


def lock_session(context: JobContext, file: ShellFile) -> str | None:
    """Lock the file's row to the end of the transaction, and return whose session it is."""
    row = context.db.execute(SQL["lock"], {"file": file.id}).fetchone()
    if row is None:
        raise refuse("NOT_FOUND", f"there is no file {file.id} any more")
    session: str | None = row[0]
    return session


def bucket_of(context: JobContext) -> Bucket:
    """Return the bucket that the files are in."""
    name = context.resources.settings_of(RecordsSettings).bucket or context.resources.settings.jobs_bucket
    if name is None:
        raise Permanent("files can't be read: this stack has no SIGNALBOX_JOBS_BUCKET")
    return Bucket(context.clients.s3, name)


@dataclass(frozen=True, slots=True)
class NextJob:
    """Hold the job that a file's session goes on with."""

    id: str
    lane: str
    estimated_tokens: int
    page_count: int


def find_pass(context: JobContext, session: str, number: int) -> NextJob | None:
    """Return a session's pass, if it was submitted."""
    row = context.db.execute(SQL["find_pass"], {"key": f"pass{number}-{session}"}).fetchone()
    return None if row is None else NextJob(*row)


def submit_pass(context: JobContext, session: str, number: int, payload: Mapping[str, object]) -> str:
    """Submit a session's pass, once, and return the job's id."""
    job = context.job
    [child] = context.submit(
        [
            NewJob(
                "ai_processing",
                {**payload, "pass_number": number, "processing_session_id": session},
                idempotency_key=f"pass{number}-{session}",
                tenant=job.tenant,
                priority=job.priority,
            )
        ]
    )
    return child.id
