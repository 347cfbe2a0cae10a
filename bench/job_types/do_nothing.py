"""A job that is done at once."""

from signalbox.jobs.context import JobContext
from signalbox.jobs.payload import JobPayload


class DoNothing(JobPayload):
    """Tells the jobs apart."""

    number: int = 0


def do_nothing(_: JobContext) -> None:
    """Done."""
