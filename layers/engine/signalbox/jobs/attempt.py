"""One attempt at one job: its payload read as the model of today, its function called in the time it may take."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from signalbox.errors import JobTypeUnknown
from signalbox.jobs.catalogue import Known
from signalbox.jobs.context import JobContext
from signalbox.jobs.job import Job
from signalbox.jobs.payload import bring_up
from signalbox.jobs.timeout import Alarm
from signalbox.jobs.verdict import Verdict, of_answer, of_error


class LeaseLost(Exception):
    """The job was rescued while this worker was at it; what it did in its transaction is undone."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A job and the code that does it."""

    job: Job
    known: Known
    context: JobContext
    alarm: Alarm

    def perform(self, seconds: float) -> Verdict:
        """Never raises but for what ends the process."""
        try:
            try:
                self.alarm.begin(seconds)
                return of_answer(self.known.perform(self.context))
            finally:
                self.alarm.end()
        except Exception as error:
            return self._failed(error)

    def perform_in_transaction(self, seconds: float, finish: Any) -> Verdict | None:
        """`finish` records a verdict in the same transaction, so that neither its end nor its effects are ever without
        the other. None where that has been done; else what is to be recorded once the effects are undone."""
        # One connection from the first statement to the commit: a new one, opened in the place of one that broke, would
        # record the end of a job whose effects are lost.
        context = replace(self.context, connection=self.context.db)
        try:
            with context.db.transaction():
                try:
                    self.alarm.begin(seconds)
                    finish(of_answer(self.known.perform(context)), context.db)
                finally:
                    self.alarm.end()
            return None
        except LeaseLost:
            self.context.submitted.clear()
            self.context.log.warning("job.lease_lost", extra=self.job.ids)
            return None
        except Exception as error:
            self.context.submitted.clear()
            return self._failed(error)

    def _failed(self, error: Exception) -> Verdict:
        verdict = of_error(self.known.type, self.job, error, random.random())  # noqa: S311
        self.context.log.warning(
            "job.attempt_failed",
            extra={**self.job.ids, "error": (verdict.error or {}).get("type"), "becomes": verdict.status},
        )
        return verdict


def resolve(known: Known, job: Job) -> Any:
    """The payload as the code of today takes it; raises JobTypeUnknown where newer code has written it."""
    if job.payload_version > known.type.version:
        raise JobTypeUnknown(
            f"the payload of a job '{job.job_type}' has version {job.payload_version}, and this code knows "
            f"{known.type.version}"
        )
    return bring_up(known, job.payload, job.payload_version)
