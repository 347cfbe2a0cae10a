"""One attempt at one job: its payload read as the model of today, its function called in the time it may take."""

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


# So long after its time-out the transaction of a worker that was frozen, or has vanished, ends.
SILENT_SECONDS = 15.0
# So long an attempt waits for a connection of its own; after that another worker may have one.
CONNECTION_PATIENCE_SECONDS = 30.0
NO_CONNECTION = (psycopg.Error, Unavailable, SchemaMismatch)


class AttemptResult(NamedTuple):
    """What has become of an attempt, and what it took: monotonic seconds, and those of the processor."""

    attempt: Attempt
    verdict: Verdict
    began: float
    ended: float
    cpu: float
    recorded: bool = False  # with the job's own transaction
    changed: Sequence[EndedJob] = ()  # by that

    def cost(self, memory_mb: int) -> Cost:
        since = self.attempt.claimed_at
        return Cost((self.began - since) * 1000, (self.ended - since) * 1000, self.cpu * 1000, memory_mb)

    def record(self, memory_mb: int) -> EndRecord:
        job = self.attempt.job
        return EndRecord(job.id, job.token, self.verdict, self.cost(memory_mb))


@dataclass(slots=True, eq=False)
class Attempt:
    """A job that has begun, and its way to a verdict. Performing never raises."""

    job: ClaimedJob
    resources: Resources
    now: datetime
    claimed_at: float  # monotonic, as the next one
    ends_at: float  # the worker's time
    first: bool  # of its invocation, which can't give it more time than it has
    progress: JobProgress = field(default_factory=JobProgress)
    submitted: list[Submitted] = field(default_factory=list)
    timer: Timer | None = None
    meter: Meter | None = None  # on the event loop
    started: bool = False  # the job's code
    reader: LentConnection | None = None
    owner: int = field(default_factory=os.getpid)  # the worker's process

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
        """Its end is written in the same transaction, so that neither that nor its effects are without the other."""
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
        if outcome.verdict.status == "completed":
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
            return of_answer(answer)
        finally:
            timer.end()

    def _call(self, known: RegisteredJobType, context: JobContext) -> Any:
        try:
            return known.perform(context)
        finally:
            end_child(self.owner)

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
            return of_answer(answer)
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
        # One that has started waits for a connection until its worker's time is over.
        if isinstance(error, NO_CONNECTION if not self.started else NoConnectionFree):
            self.resources.log.warning("job.without_connection", extra={**self.job.ids, "error": type(error).__name__})
            return BROKEN_OFF
        if timer.rang and isinstance(error, JobTimedOut | psycopg.errors.QueryCanceled):
            return self.timed_out()
        if not self.resources.settings.database_error_details:
            conceal(error)  # it may come from a connection of the job's own
        return self._judge(error)

    def timed_out(self) -> Verdict:
        """Not charged where the worker's time was over before the job's own; but the first of an invocation, which can
        never have more, is."""
        if self.ends_at - self.claimed_at < self._limit and not self.first:
            return BROKEN_OFF
        return self._judge(JobTimedOut(f"the attempt took longer than the {self._limit:g} s that it may take"))

    def unrecordable(self, why: str) -> Verdict:
        """Of an answer that the database does not take: it would be the same each time."""
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
    """Somebody had asked for the job to be cancelled before it began."""


def load_payload(known: RegisteredJobType, job: ClaimedJob) -> Any:
    """The payload as the code of today takes it; raises JobTypeUnknown where newer code has written it."""
    if job.payload_version > known.type.version:
        raise JobTypeUnknown(
            f"the payload of a job '{job.job_type}' has version {job.payload_version}, and this code knows "
            f"{known.type.version}"
        )
    return upgrade_payload(known, job.payload, job.payload_version)


def _require_idle(database: Database, timer: Timer) -> None:
    if not database.is_busy:
        return
    if timer.rang:  # it may be what the job caught in the middle of a statement
        raise JobTimedOut
    raise Permanent(LEFT_OPEN)


def _called_for_end(error: BaseException) -> Transient:
    """Of a script that has become a job: no reason to take the worker along."""
    return Transient(f"the job called for the end of its process: {type(error).__name__}({error})")
