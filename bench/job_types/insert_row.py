"""Run a transactional job with one effect: a row in a table of the business."""

from signalbox.packs.job_payload import JobPayload
from signalbox.worker.job_context import JobContext

INSERT = "INSERT INTO business (number) VALUES (%s)"


class InsertRow(JobPayload):
    """Give the row's content."""

    number: int = 0


def insert_row(context: JobContext) -> None:
    """Insert the row."""
    context.db.execute(INSERT, (context.payload.number,))
