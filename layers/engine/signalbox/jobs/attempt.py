"""One attempt at one job: its payload read as the model of today, its function called in the time it may take."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from psycopg.pq import TransactionStatus

from signalbox.database import Database, transaction_to_end
from signalbox.errors import JobTypeUnknown
from signalbox.fault import conceal
from signalbox.jobs.catalogue import Known
from signalbox.jobs.context import JobContext
from signalbox.jobs.job import Job
from signalbox.jobs.lease import LeaseLost
from signalbox.jobs.outcome import Permanent, Transient
from signalbox.jobs.payload import bring_up
from signalbox.jobs.timeout import Alarm
from signalbox.jobs.verdict import Verdict, check_pieces, of_answer, of_error


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
            verdict = self._answer(seconds)
            if self.context.tools.database.is_busy:
                self.alarm.raise_again()  # it may be what the job caught in the middle of a statement
                raise Permanent(
                    "the job left a transaction open, and what it wrote there is undone: "
                    "`with context.db.transaction():` ends it in any case"
                )
            return verdict
        except Exception as error:
            return self._failed(error)

    def perform_in_transaction(self, seconds: float, finish: Callable[[Verdict], None]) -> Verdict | None:
        """`finish` records a verdict in the same transaction, so that neither its end nor its effects are ever without
        the other. None where that has been done; else what is to be recorded once the effects are undone."""
        try:
            with transaction_to_end(self.context.db):
                verdict = self._answer(seconds)
                if self.context.db.info.transaction_status == TransactionStatus.IDLE:
                    raise Permanent(
                        "the job has ended its transaction by itself, so that its effects were kept without its end: "
                        "a transactional job executes no COMMIT or ROLLBACK"
                    )
                finish(verdict)
            return None
        except LeaseLost:
            self.context.submitted.clear()
            self.context.log.warning("job.lease_lost", extra=self.job.ids)
            return None
        except Exception as error:
            self.context.submitted.clear()
            return self._failed(error)

    def _answer(self, seconds: float) -> Verdict:
        try:
            self.alarm.begin(seconds)
            answer = self.known.perform(self.context)
            check_pieces(self.known.type, self.job, answer, self.context.now)
            return of_answer(answer)
        except SystemExit as error:  # of a script that has become a job: no reason to take the worker along
            raise Transient(f"the job called for the end of its process: SystemExit({error.code!r})") from error
        finally:
            self.alarm.end()
            for database in self._databases():
                database.hand_back()

    def _failed(self, error: Exception) -> Verdict:
        self.alarm.end()  # it may have rung just there
        if not self.context.tools.settings.database_error_details:
            conceal(error)  # it may come from a connection of the job's own
        for database in self._databases():
            database.abandon()
        verdict = of_error(self.known.type, self.job, error, random.random(), self.context.now)  # noqa: S311
        self.context.log.warning(
            "job.attempt_failed",
            extra={**self.job.ids, "error": (verdict.error or {}).get("type"), "becomes": verdict.status},
        )
        return verdict

    def _databases(self) -> Iterator[Database]:
        return filter(None, (self.context.tools.database, self.context.tools.reader))


def resolve(known: Known, job: Job) -> Any:
    """The payload as the code of today takes it; raises JobTypeUnknown where newer code has written it."""
    if job.payload_version > known.type.version:
        raise JobTypeUnknown(
            f"the payload of a job '{job.job_type}' has version {job.payload_version}, and this code knows "
            f"{known.type.version}"
        )
    return bring_up(known, job.payload, job.payload_version)
