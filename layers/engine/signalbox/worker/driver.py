"""Drive the core of one invocation: answer what it wants, with the worker's own connection, and watch running jobs.

The driver runs beside the main thread, so that leases are renewed and ends recorded while the main thread computes.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import psycopg

from signalbox.jobs.end_record import EndRecord
from signalbox.jobs.job import ClaimedJob
from signalbox.jobs.verdict import BROKEN_OFF
from signalbox.postgres.connection import Connection
from signalbox.postgres.retry import through_restart
from signalbox.publish.held_jobs import next_held
from signalbox.publish.publisher import read_due_messages
from signalbox.runtime.job_metrics import write_metrics
from signalbox.worker import lease
from signalbox.worker.attempt import Attempt, AttemptResult
from signalbox.worker.core import Claim, Core, Ended, FindDue, FindHeld, FindLeft, Hold, Record, Renew, Run, Wait, Want
from signalbox.worker.groups import Runner, TypeGroups
from signalbox.worker.lease import EndedJob
from signalbox.worker.outbox import Outbox
from signalbox.worker.runners import LOOP, MainThread, Threads
from signalbox.worker.timeout import ThreadTimer
from signalbox.worker.usage import peak_memory_mb
from signalbox.worker.visibility import bring_back

if TYPE_CHECKING:
    from signalbox.invocation import Invocation, Resources

# How long a worker waits for an unavailable database, as in a restart or a failover. Leases outlast it.
PATIENCE_SECONDS, AGAIN_SECONDS = 30.0, 0.5
WATCH_EVERY_SECONDS = 0.05
# An attempt that runs this long after its time is given up: it hangs in code that nothing can interrupt.
GIVEN_UP_AFTER_SECONDS = 10.0
BLOCKED_SECONDS = 1.0
# Jobs that there was no time for are sent again with this delay: a worker with as little time would return them at
# once.
LEFT_DELAY = timedelta(seconds=10)
# Errors that one job's end can cause.
RECORD_FAULTS = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.RaiseException,
    psycopg.errors.ProgramLimitExceeded,
)
TAKE_AT_MOST = 1000
exit_process = os._exit

Found = TypeVar("Found")


class Driver:
    """Drive one invocation."""

    def __init__(self, resources: Resources, invocation: Invocation, groups: TypeGroups, event: object) -> None:
        self.event = event
        self.resources, self.invocation, self.groups = resources, invocation, groups
        self.began = time.monotonic()
        self.messages = 0
        lane = _lane_of(event)
        is_heavy = lane == "heavy"  # one job at a time
        self.lane = "" if is_heavy else lane  # the lane whose jobs it takes up beside those of its messages
        self.lanes: Sequence[str] = ("heavy",) if is_heavy else lease.LIGHT
        self.slots = 1 if is_heavy else resources.settings.worker_slots
        self.done: SimpleQueue[AttemptResult] = SimpleQueue()
        self.main, self.threads = MainThread(self.done.put), Threads(self.done.put)
        self.at_work: dict[tuple[str, str], Attempt] = {}
        self.jobs: dict[str, ClaimedJob] = {}  # all that have begun
        self.outbox = Outbox(resources, self.jobs)
        self.sent_held: set[str] = set()  # held jobs of other lanes that were sent
        self.claimed_at = self.began
        self.counts: Counter[tuple[str, str]] = Counter()
        self.locked: list[AttemptResult] = []  # their rows are locked by others: recorded later
        self.watched_at = self.began
        self.hung: list[Attempt] = []
        self.error: BaseException | None = None

    @property
    def ends_at(self) -> float:
        return self.invocation.ends_at - self.resources.settings.budget_margin_seconds

    def run(self, messages: Mapping[str, str]) -> None:
        """Work on what these messages name. Keep an error for the main thread."""
        self.messages = len(messages)
        plan = Core(messages, self.groups.of, self.slots, self.ends_at, time.monotonic)
        try:
            self._answer_all(plan)
            self._record_locked()
            self._leave(plan.left, [*plan.held, *plan.for_others])
            missed = [id_ for id_ in messages if id_ not in self.jobs]
            self.outbox.join()
            self._patiently(lambda db: self.outbox.publish_rest(db, missed))
        except BaseException as error:
            self.error = error
        finally:
            self._await_the_others()
            self.main.close()
            self.threads.close()
        if self.hung:
            self._end_process()

    def _answer_all(self, plan: Core) -> None:
        answer: Any = None
        with closing(plan.run()) as steps, suppress(StopIteration):
            while True:
                answer = self._answer(steps.send(answer))

    def _answer(self, want: Want) -> Any:
        match want:
            case Claim():
                return self._begin(want)
            case Run():
                return self._run(want.jobs)
            case Wait():
                return self._wait(want.until)
            case Record():
                return self._record([end.outcome for end in want.ends])
            case Renew():
                return self._renew()
            case _:
                return self._patiently(lambda db: self._find(db, want))

    def _find(self, db: Connection, want: FindLeft | Hold | FindHeld | FindDue) -> Any:
        match want:
            case Hold():
                lease.mark_held(db, want.ids)
                return lease.find_left(db, want.ids)
            case FindLeft():
                return lease.find_left(db, want.ids)
            case FindHeld():
                found = lease.find_held(db, want.caps, self.lanes, int(want.longest_seconds * 1000))
                self._send_to_other_lanes(db, [one.cap for one in found if one.fits is None])
                return [one for one in found if one.fits is not None]
            case FindDue():
                return lease.find_due(db, self.lane, want.most) if self.lane else []

    def _send_to_other_lanes(self, db: Connection, caps: Sequence[str]) -> None:
        """Send held jobs to other lanes' workers, each once: it may be held again, because others were quicker."""
        if caps:
            messages = [message for message in next_held(db, caps) if message.job_id not in self.sent_held]
            self.sent_held.update(message.job_id for message in messages)
            self.outbox.send(messages)

    # ---- beginning

    def _begin(self, claim: Claim) -> list[ClaimedJob]:
        call = lease.LeaseClaim(str(uuid4()), self.invocation.worker_id, self.resources.node)
        longest = lease.LONGEST_MS if claim.longest_seconds is None else int(claim.longest_seconds * 1000)
        tries = count()

        def begin(db: Connection) -> list[ClaimedJob]:
            again = next(tries) > 0
            jobs = call.begin(
                db,
                claim.ids,
                longest_ms=longest,
                suspects=claim.suspects,
                caps=claim.caps,
                places=claim.places,
                lanes=self.lanes,
            )
            # The first answer may have been lost although its jobs have begun.
            return call.find(db) if again else jobs

        try:
            jobs = self._patiently(begin)
        except psycopg.errors.LockNotAvailable:  # one of them is locked, which must not hold up the others
            free = self._patiently(lambda db: lease.find_free(db, claim.ids))
            return self._begin(replace(claim, ids=free, caps=())) if 0 < len(free) < len(claim.ids) else []
        self.claimed_at = time.monotonic()
        places = {id_: place for place, id_ in enumerate(claim.ids)}
        return sorted(jobs, key=lambda job: (job.priority, places.get(job.id, 0)))

    def _run(self, jobs: Sequence[ClaimedJob]) -> Any:
        now = self.invocation.clock + timedelta(seconds=self.claimed_at - self.began)
        by_runner: dict[Runner, list[Attempt]] = {}
        for job in jobs:
            attempt = Attempt(job, self.resources, now, self.claimed_at, self.ends_at, not self.jobs)
            self.jobs[job.id] = job
            self.at_work[job.id, job.token] = attempt
            by_runner.setdefault(self.groups.of(job.job_type).runner, []).append(attempt)
        self.outbox.note((job.id, "running") for job in jobs)
        for attempt in by_runner.get(Runner.MAIN_THREAD, ()):
            self.main.run(attempt)
        if loop := by_runner.get(Runner.LOOP):
            LOOP.run(loop, self.done.put)
        if threads := by_runner.get(Runner.THREADS):
            self.threads.run(threads, self.groups.threads_needed())

    # ---- waiting

    def _wait(self, until: float) -> list[Ended]:
        while True:
            if given_up := self._watch():
                return given_up
            self.outbox.publish_beside()
            now = time.monotonic()
            try:
                outcomes = [self.done.get(timeout=max(0.0, min(until, self.watched_at + WATCH_EVERY_SECONDS) - now))]
            except Empty:
                if now >= until:
                    return []
                continue
            while len(outcomes) < TAKE_AT_MOST and not self.done.empty():
                outcomes.append(self.done.get())
            return self._take(outcomes)

    def _take(self, outcomes: Iterable[AttemptResult]) -> list[Ended]:
        ended: list[Ended] = []
        for outcome in outcomes:
            job = outcome.attempt.job
            if self.at_work.pop((job.id, job.token), None) is None:
                continue  # it was given up
            self.counts[job.job_type, outcome.verdict.execution] += 1
            self.outbox.add(outcome)
            ended.append(Ended(job, outcome.ended - outcome.began, outcome))
        return ended

    def _watch(self) -> list[Ended]:
        """Ring where an attempt's time is over; give up attempts that nothing can interrupt."""
        now = time.monotonic()
        if now < self.watched_at + WATCH_EVERY_SECONDS:
            return []
        self.watched_at = now
        hung = []
        for attempt in self.at_work.values():
            timer, meter = attempt.timer, attempt.meter
            if isinstance(timer, ThreadTimer) and now >= timer.rings_at:
                Thread(target=timer.ring, name="ring", daemon=True).start()
            if timer is not None and now >= timer.over_at + GIVEN_UP_AFTER_SECONDS:
                hung.append(attempt)
            if meter is not None and meter.blocks(now, BLOCKED_SECONDS):
                self.resources.log.warning("job.blocked_event_loop", extra=attempt.job.ids)
        return self._give_up(hung, now) if hung else []

    def _give_up(self, hung: Sequence[Attempt], now: float) -> list[Ended]:
        """Give up the attempts that hang, and those on the same event loop, which are not charged."""
        outcomes = [AttemptResult(attempt, attempt.timed_out(), now, now, 0.0) for attempt in hung]
        for attempt in hung:
            self.resources.log.error("job.hung", extra=attempt.job.ids)
        if any(attempt.meter is not None for attempt in hung):
            beside = [one for one in self.at_work.values() if one.meter is not None and one not in hung]
            outcomes += [AttemptResult(attempt, BROKEN_OFF, now, now, 0.0) for attempt in beside]
        self.hung += hung
        return [replace(ended, hung=True) for ended in self._take(outcomes)]

    # ---- renewing and recording

    def _renew(self) -> Any:
        beats = [
            {
                "id": attempt.job.id,
                "token": attempt.job.token,
                "percent": attempt.progress.percent,
                "message": attempt.progress.message,
                "notes": attempt.progress.notes or None,
            }
            for attempt in self.at_work.values()
        ]
        found = self._patiently(lambda db: lease.renew(db, beats))
        for attempt in self.at_work.values():
            attempt.progress.cancel_asked = found.get(attempt.job.id, False)

    def _record(self, outcomes: Iterable[AttemptResult]) -> bool:
        """Record the ends. Return whether there are caps or rates, by which others may begin now."""
        outcomes, self.locked = [*self.locked, *outcomes], []
        changed = [one for outcome in outcomes for one in outcome.changed]
        memory_mb = peak_memory_mb()
        records = [(outcome, outcome.record(memory_mb)) for outcome in outcomes if not outcome.recorded]
        changed += self._finish(records) if records else []
        self.outbox.follow([one for one in changed if one.id])
        return any(not one.id for one in changed) or any(outcome.attempt.job.capped for outcome in outcomes)

    def _finish(self, records: Sequence[tuple[AttemptResult, EndRecord]]) -> list[EndedJob]:
        """End the attempts, and return what has changed. An end that the database refuses leaves the others as is."""
        try:
            return self._patiently(lambda db: lease.finish(db, [record for _, record in records]))
        except psycopg.errors.LockNotAvailable:
            if len(records) == 1:
                self.locked.append(records[0][0])
                return []
        except RECORD_FAULTS as error:
            if len(records) == 1:
                return self._fail_unrecorded(records[0][0], error)
        middle = len(records) // 2
        return self._finish(records[:middle]) + self._finish(records[middle:])

    def _fail_unrecorded(self, outcome: AttemptResult, error: psycopg.Error) -> list[EndedJob]:
        """Fail a job whose end was refused. The server's full message may hold what the job answered."""
        attempt, kind = outcome.attempt, type(error).__name__
        self.resources.log.error("job.not_recorded", extra={**attempt.job.ids, "error": kind})
        verdict = attempt.unrecordable(f"{kind}: {error.diag.message_primary}")
        self.counts[attempt.job.job_type, outcome.verdict.execution] -= 1
        self.counts[attempt.job.job_type, verdict.execution] += 1
        try:
            return self._patiently(lambda db: lease.finish(db, [EndRecord(attempt.job.id, attempt.job.token, verdict)]))
        except RECORD_FAULTS:  # then its lease runs out, and rescue_jobs reports it
            return []

    def _patiently(self, act: Callable[[Connection], Found]) -> Found:
        seconds = min(PATIENCE_SECONDS, self.invocation.seconds_left - AGAIN_SECONDS)
        unless = (*RECORD_FAULTS, psycopg.errors.LockNotAvailable)
        return through_restart(self.resources.database, act, seconds=seconds, pause=AGAIN_SECONDS, unless=unless)

    # ---- the end

    def _leave(self, ids: Sequence[str], caps: Sequence[str]) -> None:
        """Send jobs that there was no time for, once and with a delay, and the next jobs that these caps hold."""
        if caps:
            self.outbox.send(self._patiently(lambda db: next_held(db, caps)))
        if ids:
            messages = self._patiently(lambda db: read_due_messages(db, ids))
            self.outbox.send([replace(message, delay=LEFT_DELAY) for message in messages])
            for message in messages:
                self.counts[message.job_type, "released"] += 1

    def write_metrics(self) -> None:
        resources, counts = self.resources, +self.counts  # without what was taken back
        write_metrics(resources.settings.stack, counts, self.messages, len(self.jobs))

    def _end_process(self) -> None:
        """End the process, since something hangs that nothing can interrupt.

        All that has ended is recorded. Lambda replaces the environment, and counts an error. The messages come back
        soon, and find their jobs done.
        """
        self.write_metrics()
        bring_back(self.resources.clients, self.event, self.invocation.ends_at, self.resources.log)
        sys.stdout.flush()
        exit_process(1)

    def _record_locked(self) -> None:
        """Record ends whose rows were locked. After the last try the lease runs out, and the job runs again."""
        while self.locked and time.monotonic() < self.ends_at:
            time.sleep(AGAIN_SECONDS)
            self._record([])

    def _await_the_others(self) -> None:
        """Wait for attempts after an error: none may go on in an environment that Lambda freezes and reuses."""
        while self.at_work and time.monotonic() < self.invocation.ends_at - AGAIN_SECONDS:
            with suppress(Exception):
                self._wait(time.monotonic() + AGAIN_SECONDS)
        self.hung += self.at_work.values()


def _lane_of(event: Any) -> str:
    """Return the lane that the messages came from, or an empty text if it is unknown."""
    lane = str(event["Records"][0].get("eventSourceARN", "")).rpartition("-")[2] if event["Records"] else ""
    return lane if lane in (*lease.LIGHT, "heavy") else ""
