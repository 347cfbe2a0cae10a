"""A job whose effect is a row, and which may fail after writing it."""

from signalbox.jobs.context import JobContext
from signalbox.jobs.payload import JobPayload


class NoteJob(JobPayload):
    """What to write down."""

    subject: str = "anything"
    then_fail: bool = False


def note_job(context: JobContext) -> None:
    """Writes one row; the table is the test's."""
    context.db.execute("INSERT INTO notes (job_id, subject) VALUES (%s, %s)", (context.job.id, context.payload.subject))
    if context.payload.then_fail:
        raise RuntimeError("as the payload says")
