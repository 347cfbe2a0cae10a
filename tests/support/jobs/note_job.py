"""Write a row as a job's effect, and then do what the payload says."""

from datetime import timedelta
from typing import Literal

from signalbox.packs.job_payload import JobPayload
from signalbox.packs.outcome import Snooze
from signalbox.worker.job_context import JobContext


class NoteJob(JobPayload):
    """Say what to write down."""

    subject: str = "anything"
    then: Literal[
        "complete", "fail", "snooze", "commit", "roll back", "commit in words", "hang", "lose the connection"
    ] = "complete"


def note_job(context: JobContext) -> Snooze | None:
    """Write one row; the table is the test's."""
    db = context.db
    db.execute("INSERT INTO notes (job_id, subject) VALUES (%s, %s)", (context.job.id, context.payload.subject))
    match context.payload.then:
        case "fail":
            raise RuntimeError("as the payload says")
        case "snooze":
            return Snooze(timedelta(minutes=1), "not yet")
        case "commit":
            db.commit()
        case "roll back":
            db.rollback()
        case "commit in words":
            db.execute("COMMIT")
        case "hang":
            db.execute("SELECT pg_sleep(60)")
        case "lose the connection":
            db.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    return None
