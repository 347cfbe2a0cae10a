"""Send the jobs that are due, each minute, and again those whose message seems to be lost.

Jobs that fall due before the next run are sent at once, with a delay. A job that stays queued too long is checked. In
an empty lane its message is lost. In a lane that holds messages it gets more and more time, then a second message,
which does no harm. A lane that is down keeps its jobs for a later run, and does not hold up those of the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from signalbox.errors import Refused, Unavailable
from signalbox.jobs.job_message import JobMessage
from signalbox.jobs.retry_routing import LOST_AFTER
from signalbox.ledger.context import Context, Done
from signalbox.packs.job_payload import upgrade_payload
from signalbox.postgres.queries import load_queries
from signalbox.publish import held_jobs
from signalbox.publish.lanes import Lanes
from signalbox.submit.insert import Caps, count_by_cap, declare_caps
from signalbox.submit.new_job import NewJob

SQL = load_queries(__file__)
BATCH = 1000
# How often to look at a job whose lane holds messages, before it gets another message.
PATIENCE = 3
# The most second messages in a run, for lanes that hold some: a long queue must not be doubled.
MOST_REPEATS = 10_000
# A lane with a job that has waited this long is woken, if it has no message for a worker to take.
LATE_AFTER, WAKE_UPS = timedelta(seconds=30), 10
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def dispatch_jobs(context: Context) -> Done:
    """Send the jobs. Items are the jobs that were sent."""
    dispatch = Dispatch(context, Lanes(context.clients, context.invoker.stack))
    dispatch.ask_depths()
    dispatch.send_held()
    dispatch.wake_quiet_lanes()
    more = dispatch.send_all("take_due") or dispatch.send_all("take_soon")
    if dispatch.troubles:
        raise next(iter(dispatch.troubles.values()))
    return Done(dispatch.sent, more=more)


@dataclass(slots=True)
class Dispatch:
    """Run once, and keep what was sent and what is known of the lanes."""

    context: Context
    lanes: Lanes
    sent: int = 0
    repeats: int = 0
    empty: list[str] = field(default_factory=list)
    queued: list[str] = field(default_factory=list)  # jobs whose time has just come
    troubles: dict[str, Unavailable] = field(default_factory=dict)  # by lane

    @property
    def keyed(self) -> list[str]:
        """Return the types whose caps count by a key of each job's."""
        return [one.name for one in self.context.job_types if one.cap is not None and one.cap.per == "key"]

    def ask_depths(self) -> None:
        """Find the empty ones among the lanes in which a message may be lost."""
        rows = self.context.db.execute(SQL["list_overdue_lanes"], {"now": self.context.now}).fetchall()
        for (lane,) in rows:
            try:
                if self.lanes.depth(lane) == 0:
                    self.empty.append(lane)
            except Unavailable as error:
                self._give_up(lane, error)

    def send_held(self) -> None:
        """Send held jobs that may begin but were begun by no worker, as when one died, and all whose cap is gone."""
        db = self.context.db
        for cap in held_jobs.list_holding(db):
            while not self.context.budget.spent and held_jobs.release_held(db, cap, BATCH):
                pass
            self._send(held_jobs.next_held(db, [cap]))

    def wake_quiet_lanes(self) -> None:
        """Send some messages to lanes where jobs wait and no message is available.

        The workers that have the messages may be dead, or have no room. A few more messages bring workers, which also
        take up other waiting jobs.
        """
        rows = self.context.db.execute(
            SQL["find_late"], {"late": LATE_AFTER, "lost_after": LOST_AFTER, "most": WAKE_UPS}
        ).fetchall()
        by_lane: dict[str, list[JobMessage]] = {}
        for row in rows:
            by_lane.setdefault(row[2], []).append(JobMessage(*row))
        for lane, messages in by_lane.items():
            try:
                if self.lanes.depth(lane, at_hand=True) == 0:
                    self._send(messages)
            except Unavailable as error:
                self._give_up(lane, error)

    def send_all(self, query: str) -> bool:
        """Send batch by batch, each once it is committed. Return whether the budget ended before the work did."""
        after: datetime = _BEGINNING
        while not self.context.budget.spent:
            found = self._take(query, after)
            if not found:
                return False
            after = max(sent_at for _, sent_at in found)
            self.context.publisher.publish_status_of(self.context.db, self.queued)
            self.queued.clear()
            self._send([message for message, _ in found if message is not None])
        return True

    def _take(self, query: str, after: datetime) -> list[tuple[JobMessage | None, datetime]]:
        values = {
            "now": self.context.now,
            "after": after,
            "batch": BATCH,
            "empty": self.empty,
            "down": list(self.troubles),
            "patience": PATIENCE,
            "lost_after": LOST_AFTER,
            "keyed": self.keyed,
            "may_repeat": self.repeats < MOST_REPEATS,
        }
        found: list[tuple[JobMessage | None, datetime]] = []
        unkeyed: list[str] = []
        # One transaction: a free worker claims a queued job without its message, and needs the key to respect the cap.
        with self.context.db.transaction():
            rows = self.context.db.execute(SQL[query], values)
            for job_id, job_type, lane, tenant, delay, send_at, goes, again, lacks_key in rows:
                found.append((JobMessage(job_id, job_type, lane, tenant, delay) if goes else None, send_at))
                self.repeats += goes and again and lane not in self.empty
                self.queued += [job_id] if not delay and not again else []
                unkeyed += [job_id] if lacks_key else []
            if unkeyed:
                self._set_cap_keys(unkeyed)
        return found

    def _set_cap_keys(self, ids: Sequence[str]) -> None:
        """Give jobs that were submitted in SQL the key that their type's cap counts them by."""
        db, job_types = self.context.db, self.context.job_types
        keys, declared = [], Caps({})
        for job_id, job_type, tenant, payload, version in db.execute(
            SQL["read_unkeyed"], {"ids": list(ids)}
        ).fetchall():
            known = job_types.find(job_type)
            try:
                job = NewJob(job_type=job_type, tenant=tenant)
                key = count_by_cap(known, job, upgrade_payload(known, payload, version), declared)
            except Refused:
                continue  # it fails when it is claimed, with the reason
            keys.append({"id": job_id, "cap_key": key})
        declare_caps(db, declared)
        db.execute(SQL["set_cap_keys"], {"keys": json.dumps(keys)})

    def _send(self, messages: Sequence[JobMessage]) -> None:
        by_lane: dict[str, list[JobMessage]] = {}
        for message in messages:
            by_lane.setdefault(message.lane, []).append(message)
        for lane, found in by_lane.items():
            try:
                self.sent += self.lanes.send(found)
            except Unavailable as error:
                self._give_up(lane, error)

    def _give_up(self, lane: str, error: Unavailable) -> None:
        """Give the lane up for this run. Its jobs that were taken already are treated as if their message was lost."""
        self.troubles[lane] = error
        self.context.log.warning("lane.unavailable", extra={"lane": lane, "error": str(error)})
