"""Define a job that is done at once."""

from signalbox.packs.job_payload import JobPayload
from signalbox.worker.job_context import JobContext


class DoNothing(JobPayload):
    """Carry nothing that matters."""

    number: int = 0


def do_nothing(_: JobContext) -> None:
    """Return at once."""
