"""Make one attempt at one job: read its payload as today's model, and call its function within its time."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from signalbox.budget import Budget
from signalbox.errors import DatabaseUnavailable, JobTypeUnknown, SchemaMismatch, Unavailable
from signalbox.jobs.end_record import Cost, EndRecord
from signalbox.jobs.job import ClaimedJob
from signalbox.jobs.verdict import BROKEN_OFF, CANCELLED, Verdict, check_pieces, of_answer, of_error, parked
from signalbox.packs.job_payload import upgrade_payload
from signalbox.packs.job_type import JobType
from signalbox.packs.outcome import JobTimedOut, Permanent, Transient
from signalbox.packs.registries import RegisteredJobType
from signalbox.postgres.connection import Connection, Database, transaction_to_end
from signalbox.postgres.error_details import conceal
from signalbox.postgres.fork import end_child
from signalbox.postgres.pool import NoConnectionFree
from signalbox.submit.new_job import Submitted
from signalbox.worker.connections import LEFT_OPEN, AsyncLentConnection, LentConnection
from signalbox.worker.job_context import AsyncJobContext, JobContext, JobProgress
from signalbox.worker.lease import EndedJob, LeaseLost, complete, finish
from signalbox.worker.timeout import LoopTimer, SignalTimer, ThreadTimer, Timer
from signalbox.worker.usage import Meter, peak_memory_mb

if TYPE_CHECKING:
    from signalbox.invocation import Resources


# The transaction of a frozen or vanished worker ends this long after the time-out.
SILENT_SECONDS = 15.0
# How long an attempt waits for a connection of its own; after that another worker may have one.
CONNECTION_PATIENCE_SECONDS = 30.0
NO_CONNECTION = (psycopg.Error, Unavailable, SchemaMismatch)


class AttemptResult(NamedTuple):
    """Describe the end of an attempt, and what it took: monotonic seconds, and processor seconds."""

    attempt: Attempt
    verdict: Verdict
    began: float
    ended: float
    cpu: float
    recorded: bool = False  # in the job's own transaction
    changed: Sequence[EndedJob] = ()  # by that transaction

    def cost(self, memory_mb: int) -> Cost:
        since = self.attempt.claimed_at
        return Cost((self.began - since) * 1000, (self.ended - since) * 1000, self.cpu * 1000, memory_mb)

    def record(self, memory_mb: int) -> EndRecord:
        job = self.attempt.job
        notes = self.attempt.progress.notes if self.verdict.error else None
        return EndRecord(job.id, job.token, self.verdict, self.cost(memory_mb), notes or None)


@dataclass(slots=True, eq=False)
class Attempt:
    """Bring a job that has begun to a verdict. Performing never raises."""

    job: ClaimedJob
    resources: Resources
    now: datetime
    claimed_at: float  # monotonic, as the next one
    ends_at: float  # the worker's time
    first: bool  # the first of its invocation, which can't give it more time
    progress: JobProgress = field(default_factory=JobProgress)
    submitted: list[Submitted] = field(default_factory=list)
    timer: Timer | None = None
    meter: Meter | None = None  # on the event loop
    started: bool = False  # whether the job's code has started
    reader: LentConnection | None = None

    # ---- three ways to perform it

    def perform_in_main_thread(self, alarm: SignalTimer) -> AttemptResult:
        return self._perform_with_own(alarm)

    def perform_in_thread(self) -> AttemptResult:
        timer = ThreadTimer()
        return self._perform_with_own(timer) if self._is_transactional else self._perform(timer, None)

    async def perform_on_loop(self) -> AttemptResult:
        meter = self.meter = Meter()
        timer = LoopTimer(asyncio.get_running_loop())
        self.timer = timer
        began = time.monotonic()
        try:
            known = self._known()
            lent: Any = AsyncLentConnection(self.resources.async_pool)
            context = self._context(known, lambda: lent, timer)
            try:
                verdict = await self._answer_on_loop(known, context, timer, meter)
            finally:
                left_open = await lent.take_back()
            if left_open:
                raise Permanent(LEFT_OPEN)
        except BaseException as error:
            verdict = self._failed(error, timer)
        return AttemptResult(self, verdict, began, time.monotonic(), meter.cpu)

    # ---- in a thread

    def _perform_with_own(self, timer: SignalTimer | ThreadTimer) -> AttemptResult:
        began = time.monotonic()
        try:
            own = self.resources.pool.take(min(CONNECTION_PATIENCE_SECONDS, self.ends_at - began))
        except DatabaseUnavailable as error:
            return AttemptResult(self, self._failed(error, timer), began, time.monotonic(), 0.0)
        try:
            return self._perform(timer, own)
        finally:
            self.resources.pool.give_back(own, spoilt=bool(timer.cancelled))

    def _perform(self, timer: SignalTimer | ThreadTimer, own: Database | None) -> AttemptResult:
        self.timer = timer
        began, cpu = time.monotonic(), time.thread_time()
        try:
            known = self._known()
            if known.type.transactional and own is not None:
                return self._perform_in_transaction(known, timer, own, began, cpu)
            if own is None:
                lent: Any = LentConnection(self.resources.pool, timer, self.ends_at)
                try:
                    verdict = self._answer(known, self._context(known, lambda: lent, timer), timer)
                finally:
                    left_open = lent.take_back()
                if timer.cancelled:  # the job has caught it
                    raise JobTimedOut
                if left_open:
                    raise Permanent(LEFT_OPEN)
            else:
                verdict = self._answer(known, self._context(known, own.connection, timer, own), timer)
                _require_idle(own, timer)
        except BaseException as error:
            verdict = self._failed(error, timer)
        finally:
            if self.reader is not None:
                self.reader.take_back()
        return AttemptResult(self, verdict, began, time.monotonic(), time.thread_time() - cpu)

    def _perform_in_transaction(
        self, known: RegisteredJobType, timer: SignalTimer | ThreadTimer, own: Database, began: float, cpu: float
    ) -> AttemptResult:
        """Record the job's end in the same transaction, so that its effects and its end commit together."""
        db = own.connection()
        changed: list[EndedJob] = []
        try:
            with transaction_to_end(db, max(0.0, self._seconds) + SILENT_SECONDS):
                verdict = self._answer(known, self._context(known, lambda: db, timer, own), timer, db)
                if db.info.transaction_status == TransactionStatus.IDLE:
                    raise Permanent(
                        "the job has ended its transaction by itself, so that its effects were kept without its end: "
                        "a transactional job executes no COMMIT or ROLLBACK"
                    )
                outcome = AttemptResult(self, verdict, began, time.monotonic(), time.thread_time() - cpu, True, changed)
                changed += self._end(db, outcome)
            return outcome
        except LeaseLost:
            self.submitted.clear()
            self.resources.log.warning("job.lease_lost", extra=self.job.ids)
            return outcome

    def _end(self, db: Connection, outcome: AttemptResult) -> list[EndedJob]:
        memory_mb = peak_memory_mb()
        if outcome.verdict.status == "completed" and outcome.verdict.files is None:
            return complete(db, self.job, outcome.verdict, outcome.cost(memory_mb))
        changed = finish(db, [outcome.record(memory_mb)])
        if not changed:
            raise LeaseLost
        return changed

    def _answer(
        self,
        known: RegisteredJobType,
        context: JobContext,
        timer: SignalTimer | ThreadTimer,
        db: Connection | None = None,
    ) -> Verdict:
        try:
            timer.begin(self._seconds, db)
            self.started = True
            answer = self._call(known, context)
            check_pieces(known.type, self.job, answer, context.now)
            return of_answer(known.type, answer)
        finally:
            timer.end()

    def _call(self, known: RegisteredJobType, context: JobContext) -> Any:
        owner = os.getpid()
        try:
            return known.perform(context)
        finally:
            end_child(owner)

    # ---- on the event loop

    async def _answer_on_loop(
        self, known: RegisteredJobType, context: JobContext, timer: LoopTimer, meter: Meter
    ) -> Verdict:
        if known.type.transactional:
            raise Permanent(f"job type '{known.type.name}' is transactional: its function is `def`, not `async def`")
        try:
            timer.begin(self._seconds)
            self.started = True
            answer = await meter.drive(known.perform(context))
            check_pieces(known.type, self.job, answer, context.now)
            return of_answer(known.type, answer)
        except asyncio.CancelledError:
            if timer.rang:
                raise JobTimedOut from None
            raise
        finally:
            timer.end()

    # ---- both

    @property
    def _is_transactional(self) -> bool:
        known = self.resources.job_types.by_name.get(self.job.job_type)
        return known is not None and known.type.transactional

    @property
    def _limit(self) -> float:
        return self.job.timeout_ms / 1000

    @property
    def _seconds(self) -> float:
        return min(self._limit, self.ends_at - time.monotonic())

    def _known(self) -> RegisteredJobType:
        if self.job.cancel_requested_at is not None:
            raise _Unwanted
        return self.resources.job_types.find(self.job.job_type)

    def _context(
        self, known: RegisteredJobType, connect: Callable[[], Any], timer: Timer, own: Database | None = None
    ) -> JobContext:
        kind = AsyncJobContext if isinstance(timer, LoopTimer) else JobContext
        resources = self.resources if own is None else replace(self.resources, database=own)
        if resources.readers is not None and isinstance(timer, SignalTimer | ThreadTimer):
            self.reader = LentConnection(resources.readers, timer, self.ends_at)
        return kind(
            job=self.job,
            payload=load_payload(known, self.job),
            now=self.now,
            budget=Budget.of(self._seconds),
            resources=resources,
            progress=self.progress,
            submitted=self.submitted,
            connect=connect,
            reader=self.reader,
        )

    def _failed(self, error: BaseException, timer: Timer) -> Verdict:
        timer.end()
        self.submitted.clear()
        if not isinstance(error, Exception):
            error = _called_for_end(error).with_traceback(error.__traceback__)
        if isinstance(error, _Unwanted):
            return CANCELLED
        if isinstance(error, JobTypeUnknown):
            return parked(error)
        # A job that has started waits for a connection until its worker's time is over.
        if isinstance(error, NO_CONNECTION if not self.started else NoConnectionFree):
            self.resources.log.warning("job.without_connection", extra={**self.job.ids, "error": type(error).__name__})
            return BROKEN_OFF
        if timer.rang and isinstance(error, JobTimedOut | psycopg.errors.QueryCanceled):
            return self.timed_out()
        if not self.resources.settings.database_error_details:
            conceal(error)  # it may come from the job's own connection
        return self._judge(error)

    def timed_out(self) -> Verdict:
        """Return the verdict for a time-out.

        No attempt is charged where the worker's time was over before the job's own. The first attempt of an invocation
        is charged, since it can never have more time.
        """
        if self.ends_at - self.claimed_at < self._limit and not self.first:
            return BROKEN_OFF
        return self._judge(JobTimedOut(f"the attempt took longer than the {self._limit:g} s that it may take"))

    def unrecordable(self, why: str) -> Verdict:
        """Return the verdict for an answer that the database does not take: it would be the same each time."""
        return self._judge(Permanent(f"what became of the job can't be recorded: {why}"))

    def _judge(self, error: Exception) -> Verdict:
        known = self.resources.job_types.by_name.get(self.job.job_type)
        job_type = known.type if known is not None else JobType(self.job.job_type, "unknown", "")
        verdict = of_error(job_type, self.job, error, random.random(), self.now)  # noqa: S311
        self.resources.log.warning(
            "job.attempt_failed",
            extra={**self.job.ids, "error": (verdict.error or {}).get("type"), "becomes": verdict.status},
        )
        return verdict


class _Unwanted(Exception):
    """The job's cancellation was requested before it began."""


def load_payload(known: RegisteredJobType, job: ClaimedJob) -> Any:
    """Return the payload as today's code takes it. Raise JobTypeUnknown where newer code has written it."""
    if job.payload_version > known.type.version:
        raise JobTypeUnknown(
            f"the payload of a job '{job.job_type}' has version {job.payload_version}, and this code knows "
            f"{known.type.version}"
        )
    return upgrade_payload(known, job.payload, job.payload_version)


def _require_idle(database: Database, timer: Timer) -> None:
    if not database.is_busy:
        return
    if timer.rang:  # the job may have caught it in the middle of a statement
        raise JobTimedOut
    raise Permanent(LEFT_OPEN)


def _called_for_end(error: BaseException) -> Transient:
    """Return an error for a job that exits, as a script does: that is no reason to end the worker."""
    return Transient(f"the job called for the end of its process: {type(error).__name__}({error})")
