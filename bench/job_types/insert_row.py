"""A transactional job with one effect: a row in a table of the business."""

from signalbox.packs.job_payload import JobPayload
from signalbox.worker.job_context import JobContext

INSERT = "INSERT INTO business (number) VALUES (%s)"


class InsertRow(JobPayload):
    """The row."""

    number: int = 0


def insert_row(context: JobContext) -> None:
    """One statement."""
    context.db.execute(INSERT, (context.payload.number,))
