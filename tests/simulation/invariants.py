"""What must hold after each change, once the faults have stopped, and in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from signalbox.queries import load_queries
from tests.simulation.outside import short
from tests.simulation.scheduler import Violation

SQL = load_queries(__file__)
FINAL = ("completed", "failed", "cancelled")
ALL_DONE_SECONDS = 2 * 3600.0
HELD_SECONDS = 120.0
KEPT_FULL_SECONDS = 75.0  # a minute until the sweep, and a moment until its message has come
# How an execution may end whose code was to end so.
ENDS = {
    "complete": "completed", "fail": "failed", "permanent": "failed", "more": "continued", "snooze": "snoozed",
    "limited": "throttled", "cancel": "cancelled", "time out": "timeout",
}  # fmt: skip


class State(NamedTuple):
    """A job's."""

    id: str
    status: str
    suspect: bool
    worker_id: str | None
    token: str | None
    leased_seconds: float | None


@dataclass
class Invariants:
    """What was seen after the last change, to compare with."""

    world: Any
    states: dict[str, State] = field(default_factory=dict)
    seen_at: float = 0.0
    looked_at: float = 0.0
    changes: int = 0
    running: dict[str, int] = field(default_factory=dict)  # by control
    room_since: dict[str, float] = field(default_factory=dict)

    def check(self) -> None:
        """Raise a Violation for the first that does not hold."""
        db, world = self.world.session, self.world
        is_calm = not world.in_trouble and world.now >= self.looked_at + 1
        rows = db.execute(SQL["list_states"], {"changes": -1 if is_calm else self.changes}).fetchall()
        if not rows:
            return
        self.changes = rows[0][0]
        states = {row[1]: State(*row[1:]) for row in rows}
        changed = [states[was.id] for was in self.states.values() if states[was.id][:-1] != was[:-1]]
        for now in changed:
            self._check_change(self.states[now.id], now)
        is_same = not changed and len(states) == len(self.states)
        self.states, self.seen_at = states, world.now
        if is_same and not is_calm:
            return
        self.looked_at = world.now
        self._check_controls(db.execute(SQL["list_controls"]).fetchall())
        for what, id_ in [] if is_same else db.execute(SQL["find_faults"]).fetchall():
            raise Violation(f"{short(id_) or id_} {what}")
        if not world.in_trouble:
            self._check_progress()

    def is_suspect(self, id_: str, token: str) -> bool:
        """Whether a worker had died with the job before it was begun under this token."""
        return id_ in self.states and self.states[id_].suspect and self.states[id_].token == token

    def _check_change(self, was: State, now: State) -> None:
        if was.status in FINAL and now.status != was.status:
            raise Violation(f"{short(was.id)} was {was.status}, and has become {now.status}")
        if was.token is None or now.token == was.token or was.leased_seconds is None:
            return
        actor = self.world.current.process.name
        if actor.startswith("rescue"):
            if was.leased_seconds > self.world.now - self.seen_at + 0.001:
                raise Violation(f"{short(was.id)} was taken from {was.worker_id}, whose lease had not run out")
        elif was.worker_id != f"{actor}/0":
            raise Violation(f"{short(was.id)} was ended by {actor}, and is at work at {was.worker_id}")

    def _check_controls(self, controls: list[Any]) -> None:
        world = self.world
        for name, cap, running, held, has_room in controls:
            if cap is not None and running > max(cap, self.running.get(name, 0)):
                raise Violation(f"{running} jobs of {name} run, and its cap is {cap}")
            starved = held and has_room and world.queue.idle and not world.in_trouble
            if not starved or running > self.running.get(name, 0):
                self.room_since.pop(name, None)
            since = self.room_since.setdefault(name, world.now) if starved else world.now
            longest = HELD_SECONDS if cap is None else KEPT_FULL_SECONDS
            if world.now - since > longest:
                raise Violation(f"{name} has held {held} jobs for {world.now - since:.0f} s, and has room for them")
            self.running[name] = running

    def _check_progress(self) -> None:
        left = [state for state in self.states.values() if state.status not in FINAL]
        if not left and self.world.all_submitted:
            self.world.over = True
        elif self.world.now > self.world.calm_at + ALL_DONE_SECONDS:
            names = ", ".join(f"{short(state.id)} is {state.status}" for state in left)
            raise Violation(f"two hours after the last fault {names}")

    def check_end(self) -> None:
        """Every execution was a start of the code, or was lost by a worker that was killed before that; and ended as
        its code did, or was lost by a worker that something had happened to."""
        log = self.world.log
        rows = self.world.session.execute(SQL["list_executions"]).fetchall()
        for id_, token, status, worker_id, result in rows:
            word, process = log.started.get((id_, token)), log.workers[worker_id]
            if word is None and not (status == "lost" and (process.killed or process.frozen_until)):
                raise Violation(f"{short(id_)} has an attempt of {worker_id} whose code was never started")
            if status == "lost" and not process.disturbed:
                raise Violation(f"{short(id_)} was lost by {worker_id}, to which nothing had happened")
            if status not in ("lost", "cancelled", "released", "failed", ENDS.get(word or "")):
                raise Violation(f"{short(id_)} was to {word}, and its attempt is {status}")
            if status == "completed" and result != token:
                raise Violation(f"{short(id_)} has the result of another attempt")
        if unknown := log.started.keys() - {row[:2] for row in rows}:
            raise Violation(f"{short(str(unknown))} ran without an attempt")
