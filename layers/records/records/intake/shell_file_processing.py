"""Read an uploaded file's text, keep it with the lines' places, and begin the first pass of a new session.

the file → its lines, or Textract's → records/ocr/<session>.json → one transaction: the file's row, the first pass
"""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from records.intake import lines
from records.intake.read_file import read_file
from records.intake.shell_file import NextJob, bucket_of, find_file, find_pass, lock_session, submit_pass
from signalbox import Completed, JobContext, JobPayload, Snooze
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class ShellFileProcessing(JobPayload):
    """Say which file, whose it is, and how urgent it is to read it."""

    shell_file_id: UUID
    patient_id: UUID
    raw_file: str  # the key of its object
    job_lane: Literal["fast_queue", "standard_queue"] = "standard_queue"
    correlation_id: str | None = None  # passed on, and no more


def shell_file_processing(context: JobContext) -> Completed | Snooze:
    """Return the session, what was read, and the job of the first pass."""
    file, session = find_file(context), context.job.id
    if (known := find_pass(context, session, 1)) is not None:
        return _completed(session, known)
    context.report(10, "Reading the file")
    pages = read_file(context, file)
    if isinstance(pages, Snooze):
        return pages
    key, tokens = f"records/ocr/{session}.json", lines.estimate_tokens(pages)
    bucket_of(context).write(key, lines.to_json(pages), "application/json")
    payload: ShellFileProcessing = context.payload
    child = {
        "job_lane": "ai_queue_complex" if lines.is_complex(tokens, len(pages)) else "ai_queue_simple",
        "raw_file": file.raw_file,
        "patient_id": file.patient_id,
        "shell_file_id": file.id,
        "correlation_id": payload.correlation_id,
        "estimated_tokens": tokens,
        "ocr_spatial_data": key,
        "document_metadata": {"mime_type": file.mime_type, "page_count": len(pages)},
    }
    with context.db.transaction():
        lock_session(context, file)
        if (known := find_pass(context, session, 1)) is None:  # else a twin was faster
            values = {"file": file.id, "session": session, "pages": len(pages), "key": key}
            context.db.execute(SQL["begin_session"], values)
            job_id = submit_pass(context, session, 1, child)
            known = NextJob(job_id, str(child["job_lane"]), tokens, len(pages))
    return _completed(session, known)


def _completed(session: str, known: NextJob) -> Completed:
    return Completed(
        {
            "processing_session_id": session,
            "page_count": known.page_count,
            "estimated_tokens": known.estimated_tokens,
            "job_lane": known.lane,
            "ai_job_id": known.id,
        }
    )
