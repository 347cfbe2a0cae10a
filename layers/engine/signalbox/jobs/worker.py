"""The worker: brings the jobs of an SQS batch from their lease to their end.

    read → claim → resolve → perform → decide → record → send what follows

Postgres is the truth, so a message is done with once the state of its job is recorded, whatever that is. Only those
come back that nobody can read, until their dead-letter queue has them; an error of the batch brings back all of it.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import psycopg

from signalbox.budget import Budget
from signalbox.database import Connection
from signalbox.errors import DatabaseUnavailable, JobRefused, JobTypeUnknown
from signalbox.invocation import Invocation, Tools
from signalbox.jobs.attempt import Attempt, resolve
from signalbox.jobs.catalogue import Known
from signalbox.jobs.context import JobContext, Progress
from signalbox.jobs.events import Change
from signalbox.jobs.heartbeat import Heartbeat
from signalbox.jobs.job import Job
from signalbox.jobs.job_type import JobType
from signalbox.jobs.lanes import LONGEST_DELAY_SECONDS, Notice
from signalbox.jobs.lease import Changed, Lease, LeaseLost
from signalbox.jobs.message import read_messages
from signalbox.jobs.metrics import write_metrics, write_version_metrics
from signalbox.jobs.outcome import Permanent
from signalbox.jobs.redelivery import bring_back
from signalbox.jobs.submission import Submitted
from signalbox.jobs.timeout import Alarm
from signalbox.jobs.usage import Cost, spent
from signalbox.jobs.verdict import CANCELLED, RELEASED, Verdict, as_json, of_error, parked

# What has ended is recorded with the first job that ends after so long, with so many, or by the heartbeat, whichever is
# first: a crash makes the rest run again.
RECORD_AFTER_SECONDS = 1.0
RECORD_AT_MOST = 1000
# So long a worker waits for a database that is away, as in a restart or a failover. A message that comes back without
# having been looked at is hidden for six times the function's time-out, and what has been done and is not recorded is
# done again once its lease has run out.
PATIENCE_SECONDS, AGAIN_SECONDS = 30.0, 0.5
# What one job's end can cause.
RECORD_FAULTS = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.RaiseException,
    psycopg.errors.ProgramLimitExceeded,
)
# A job is not begun with less of its own time left than this share: it would only be cut off.
LEAST_SHARE = 0.5


Found = TypeVar("Found")


class Record(NamedTuple):
    """What end_attempts takes of one job."""

    job: Job
    execution: str
    text: str


@dataclass(slots=True)
class Batch:
    """The jobs of one invocation on their way, and what of them is not recorded yet."""

    tools: Tools
    lease: Lease
    invocation: Invocation
    heartbeat: Heartbeat
    alarm: Alarm = field(default_factory=Alarm)
    begun: bool = False  # one of its jobs
    claimed_at: float = 0.0  # monotonic
    recorded_at: float = 0.0
    jobs: dict[str, Job] = field(default_factory=dict)
    ahead: dict[str, Job] = field(default_factory=dict)  # of them, those that were not begun
    delays: dict[str, float] = field(default_factory=dict)  # of those that are to be sent again
    records: list[Record] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)  # what the heartbeat has recorded
    lock: Lock = field(default_factory=Lock)  # on these two, which the heartbeat's thread takes and gives
    notices: list[Notice] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    followers: list[str] = field(default_factory=list)  # jobs that waited for these
    submitted: list[Submitted] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def ends_at(self) -> float:
        return self.invocation.ends_at - self.tools.settings.budget_margin_seconds

    def run(self, ids: Sequence[str]) -> None:
        tries = count()
        claimed = self._patiently(self._patience, lambda db: self.lease.claim(db, ids, again=next(tries) > 0))
        self.claimed_at = self.recorded_at = time.monotonic()
        self.jobs = {job.id: job for job in claimed}
        self.ahead = self.jobs.copy()
        self.heartbeat.also = self._record_beside
        self._note((job.id, "running") for job in claimed)
        try:
            with self.heartbeat, self.alarm:
                for job in claimed:
                    self._attempt(job)
        finally:
            # Those that something has kept from their turn, which is none of their fault.
            self.records += [self._record_of(job, RELEASED) for job in self.ahead.values()]
            self._record()
            self._carry(ids)

    def _attempt(self, job: Job) -> None:
        """Brings one job to its verdict. Those that there is no time for are given back unharmed; but the first is
        begun in any case, or a function with too little time for its jobs would hand them round for ever."""
        limit, left = job.timeout_ms / 1000, self.ends_at - time.monotonic()
        if left <= 0 or (left < limit * LEAST_SHARE and self.begun):
            return self._keep(job, RELEASED)
        if job.cancel_requested_at is not None or job.id in self.heartbeat.unwanted:
            return self._keep(job, CANCELLED)
        try:
            known = self.tools.catalogue.find(job.job_type)
            payload = resolve(known, job)
        except JobTypeUnknown as error:
            return self._keep(job, parked(error))
        except JobRefused as error:
            return self._keep(job, of_error(known.type, job, error, 0, self.invocation.clock))
        return self._perform(job, known, payload, min(limit, left))

    def _perform(self, job: Job, known: Known, payload: Any, seconds: float) -> None:
        self.begun = True
        # One connection from a transaction's first statement to its commit: a new one, opened in the place of one that
        # broke, would record the end of a job whose effects are lost.
        db = self._recorded() if known.type.transactional else None
        del self.ahead[job.id]
        began, cpu = time.monotonic(), spent()[0]
        progress, budget = Progress(), Budget(began + seconds)
        self.heartbeat.working_on(job.id, progress)
        context = JobContext(job, payload, self.invocation.clock, budget, self.tools, progress, [], db)
        attempt = Attempt(job, known, context, self.alarm)
        if db is None:
            verdict: Verdict | None = attempt.perform(seconds)
        else:
            changed: list[Changed] = []

            def finish(answer: Verdict) -> None:
                changed[:] = self._end(job, answer, db, began, cpu)

            verdict = attempt.perform_in_transaction(seconds, finish)
            if verdict is None:  # only now is it committed
                self._follow(changed)
        self.submitted += context.submitted
        if verdict is not None:
            self._keep(job, verdict, began, cpu)

    def _end(self, job: Job, verdict: Verdict, db: Connection, began: float, cpu: float) -> list[Changed]:
        """Alone, in the job's own transaction."""
        if verdict.status == "completed":
            changed = self.lease.complete(db, job, verdict, Cost.of(self.claimed_at, began, cpu))
            self.counts[job.job_type, verdict.execution] += 1
            return changed
        changed = self.lease.finish(db, [self._record_of(job, verdict, began, cpu).text])
        if not changed:
            raise LeaseLost
        return changed

    def _keep(self, job: Job, verdict: Verdict, began: float = 0.0, cpu: float = 0.0) -> None:
        self.ahead.pop(job.id, None)
        record = self._record_of(job, verdict, began, cpu)
        with self.lock:
            self.records.append(record)
        if len(self.records) >= RECORD_AT_MOST or time.monotonic() - self.recorded_at > RECORD_AFTER_SECONDS:
            self._record()

    def _record_of(self, job: Job, verdict: Verdict, began: float = 0.0, cpu: float = 0.0) -> Record:
        """The verdict with what was measured, in milliseconds since the claim."""
        self.counts[job.job_type, verdict.execution] += 1
        if verdict.status == "pending":
            self.delays[job.id] = verdict.delay.total_seconds()
        measured = ""
        if began:
            since, until, cpu_ms, memory_mb = Cost.of(self.claimed_at, began, cpu)
            measured = f'"began_ms":{since:.3f},"ended_ms":{until:.3f},"cpu_ms":{cpu_ms:.3f},"memory_mb":{memory_mb},'
        text = f'{{"id":"{job.id}","number":{job.execution},{measured}{as_json(verdict)[1:]}'
        return Record(job, verdict.execution, text)

    def _recorded(self) -> Connection:
        """The connection, where nothing waits to be recorded."""
        self._record()
        return self.tools.database.connection()

    def _record(self) -> None:
        with self.lock:
            records, self.records = self.records, []
            changed, self.changed = self.changed, []
        self._follow(changed)
        if records:
            self._follow(self._finish(records, self._patience))
            self.recorded_at = time.monotonic()

    def _record_beside(self, db: Connection) -> None:
        """By the heartbeat: while a long job is at work, those before it would else not be known to have ended, and
        be done again with it."""
        with self.lock:
            records, self.records = self.records, []
        if not records:
            return
        try:
            changed = self.lease.finish(db, [record.text for record in records])
        except BaseException:
            with self.lock:
                self.records[:0] = records
            raise
        with self.lock:
            self.changed += changed

    def _finish(self, records: Sequence[Record], until: float) -> list[Changed]:
        """What has changed. One end that the database does not take leaves the others what they are."""
        try:
            return self._patiently(until, lambda db: self.lease.finish(db, [record.text for record in records]))
        except RECORD_FAULTS as error:
            if len(records) == 1:
                return self._fail_unrecorded(records[0], error)
        middle = len(records) // 2
        return self._finish(records[:middle], until) + self._finish(records[middle:], until)

    def _patiently(self, until: float, act: Callable[[Connection], list[Found]]) -> list[Found]:
        """Again and again where the database is away, or a job has left the connection as nobody can use it."""
        broke = False
        while True:
            try:
                return act(self.tools.database.connection())
            except RECORD_FAULTS:
                raise
            except (psycopg.OperationalError, psycopg.InternalError, DatabaseUnavailable):
                if broke and time.monotonic() > until:
                    raise
                self.tools.database.close()
            if broke:
                time.sleep(AGAIN_SECONDS)
            broke = True

    @property
    def _patience(self) -> float:
        return min(time.monotonic() + PATIENCE_SECONDS, self.invocation.ends_at - AGAIN_SECONDS)

    def _fail_unrecorded(self, record: Record, error: psycopg.Error) -> list[Changed]:
        """Not in all of the server's words: they may hold what the job answered."""
        job, kind = record.job, type(error).__name__
        told = Permanent(f"what became of the job can't be recorded: {kind}: {error.diag.message_primary}")
        self.tools.log.error("job.not_recorded", extra={**job.ids, "error": kind})
        self.counts[job.job_type, record.execution] -= 1
        verdict = of_error(self._type_of(job), job, told, 0, self.invocation.clock)
        try:
            return self.lease.finish(self.tools.database.connection(), [self._record_of(job, verdict).text])
        except RECORD_FAULTS:  # so its lease runs out, and rescue_jobs tells of it
            return []

    def _type_of(self, job: Job) -> JobType:
        try:
            return self.tools.catalogue.find(job.job_type).type
        except JobTypeUnknown:
            return JobType(job.job_type, "unknown", "")

    def _follow(self, changed: Sequence[Changed]) -> None:
        """What is to be carried for what has been recorded."""
        for id_, status, follows in changed:
            if follows:
                self.followers.append(id_)
            elif status == "pending" and self.delays.get(id_, 0) <= LONGEST_DELAY_SECONDS:
                job = self.jobs[id_]
                # A second more: SQS counts in whole ones, and a message that comes early is for nothing.
                delay = round(self.delays[id_] + 0.5)
                self.notices.append(Notice(id_, job.job_type, job.lane, job.tenant, delay))
        self._note((id_, status) for id_, status, follows in changed if not follows)

    def _note(self, changed: Iterable[tuple[str, str]]) -> None:
        if not self.tools.settings.event_bus:
            return
        jobs = ((self.jobs[id_], status) for id_, status in changed)
        self.changes += [
            Change(job.id, job.job_type, job.lane, job.tenant, status, job.attempt) for job, status in jobs
        ]

    def _carry(self, ids: Sequence[str]) -> None:
        courier = self.tools.courier
        courier.send(self.notices)
        courier.tell(self.changes)
        courier.carry(self.submitted)
        missed = [id_ for id_ in ids if id_ not in self.jobs]
        if not (self.followers or missed):
            return
        db = self.tools.database.connection()
        courier.send_due(db, self.followers)
        courier.tell_of_fallen(db, self.followers)
        courier.tell_of_held(db, missed)


def work(tools: Tools, event: object, invocation: Invocation) -> dict[str, Any]:
    """Answers SQS which messages are to come back."""
    messages, unreadable = read_messages(event, tools.log)
    lease = Lease(
        token=uuid.uuid4(),
        worker_id=invocation.worker_id,
        node=tools.node,
        life=timedelta(seconds=invocation.seconds_left + tools.settings.lease_margin_seconds),
    )
    batch = Batch(tools, lease, invocation, Heartbeat(tools.database, lease.token))
    if messages:
        try:
            batch.run(list(messages))
        except BaseException as error:
            tools.database.close()  # whatever has been done to it
            if isinstance(error, psycopg.OperationalError | DatabaseUnavailable):
                bring_back(tools.clients, event, invocation.ends_at, tools.log)
            raise
    counts = +batch.counts  # without what was taken back
    write_metrics(tools.settings.stack, counts, len(messages), len(batch.jobs))
    write_version_metrics(tools.settings.stack, tools.function, tools.version, counts)
    return {"batchItemFailures": [{"itemIdentifier": id_} for id_ in unreadable]}
