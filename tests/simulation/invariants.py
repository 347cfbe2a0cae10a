"""Check what must hold after each change, once the faults have stopped, and in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from signalbox.postgres.queries import load_queries
from tests.simulation.outside import short
from tests.simulation.scheduler import Violation

SQL = load_queries(__file__)
FINAL = ("completed", "failed", "cancelled")
ALL_DONE_SECONDS = 2 * 3600.0
HELD_SECONDS = 120.0
LOOK_EVERY_SECONDS = 5.0  # where nothing changes
KEPT_FULL_SECONDS = 75.0  # a minute until the sweep, and a moment until its message has come
# How an execution may end whose code was to end so.
ENDS = {
    "complete": "completed", "fail": "failed", "permanent": "failed", "more": "continued", "snooze": "snoozed",
    "limited": "throttled", "wait": "snoozed", "cancel": "cancelled", "time out": "timeout",
}  # fmt: skip


class State(NamedTuple):
    """Hold a job's state."""

    id: str
    status: str
    suspect: bool
    worker_id: str | None
    token: str | None
    leased_until: float | None


@dataclass
class Invariants:
    """Compare each state with the one after the last change."""

    world: Any
    states: dict[str, State] = field(default_factory=dict)
    looked_at: float = 0.0
    written_by: int = 0  # the last transaction that was seen
    running: dict[str, int] = field(default_factory=dict)  # by control
    room_since: dict[str, float] = field(default_factory=dict)

    def check(self) -> None:
        """Raise a Violation for the first invariant that does not hold."""
        db, world = self.world.session, self.world
        rows = db.execute(SQL["list_states"], {"written_by": self.written_by, "now": world.now}).fetchall()
        has_changed = False
        for by, *row in rows:
            now, was = State(*row), self.states.get(row[0])
            self.written_by = max(self.written_by, by)
            if was is not None and was[:-1] != now[:-1]:
                self._check_change(was, now)
            has_changed = has_changed or was is None or was[:-1] != now[:-1]
            self.states[now.id] = now
        is_calm = not world.in_trouble and world.now >= self.looked_at + LOOK_EVERY_SECONDS
        if not has_changed and not is_calm:
            return
        self.looked_at = world.now
        self._check_controls(db.execute(SQL["list_controls"]).fetchall())
        for what, id_ in db.execute(SQL["find_faults"]).fetchall() if has_changed else []:
            raise Violation(f"{short(id_) or id_} {what}")
        if not world.in_trouble:
            self._check_progress()

    def is_suspect(self, id_: str, token: str) -> bool:
        """Return whether a worker had died with the job before this token began it."""
        return id_ in self.states and self.states[id_].suspect and self.states[id_].token == token

    def _check_change(self, was: State, now: State) -> None:
        is_redriven = (was.status, now.status, self.world.current.name) == ("failed", "pending", "operator")
        if was.status in FINAL and now.status != was.status and not is_redriven:
            raise Violation(f"{short(was.id)} was {was.status}, and has become {now.status}")
        if was.token is None or now.token == was.token or was.leased_until is None:
            return
        actor = self.world.current.process.name
        if actor.startswith("rescue"):
            if was.leased_until > self.world.now + 0.001:
                raise Violation(f"{short(was.id)} was taken from {was.worker_id}, whose lease had not run out")
        elif was.worker_id != f"{actor}/0":
            raise Violation(f"{short(was.id)} was ended by {actor}, and is at work at {was.worker_id}")

    def _check_controls(self, controls: list[Any]) -> None:
        world, ran, had_room = self.world, self.running, self.room_since
        self.running, self.room_since = {}, {}
        for name, cap, running, held, lane, has_room in controls:
            if cap is not None and running > max(cap, ran.get(name, 0)):
                raise Violation(f"{running} jobs of {name} run, and its cap is {cap}")
            self.running[name] = running
            if not held or not has_room or not world.queue.has_idle(lane) or world.in_trouble:
                continue
            since = self.room_since[name] = world.now if running > ran.get(name, 0) else had_room.get(name, world.now)
            if world.now - since > (HELD_SECONDS if cap is None else KEPT_FULL_SECONDS):
                raise Violation(f"{name} has held {held} jobs for {world.now - since:.0f} s, and has room for them")

    def _check_progress(self) -> None:
        left = [state for state in self.states.values() if state.status not in FINAL]
        if not left and self.world.all_submitted:
            self.world.over = True
        elif self.world.now > self.world.calm_at + ALL_DONE_SECONDS:
            names = ", ".join(f"{short(state.id)} is {state.status}" for state in left)
            raise Violation(f"two hours after the last fault {names}")

    def check_steps(self) -> None:
        """A step gives each attempt the same answer."""
        if unlike := [id_ for id_, answers in self.world.log.charged.items() if len(answers) > 1]:
            raise Violation(f"{short(unlike[0])} was answered by one step in different ways")

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
            if status == "failed" and word == "complete" and not process.disturbed:
                raise Violation(f"{short(id_)} failed at {worker_id}, to which nothing had happened")
            if status not in ("lost", "cancelled", "released", "failed", ENDS.get(word or "")):
                raise Violation(f"{short(id_)} was to {word}, and its attempt is {status}")
            if status == "completed" and result != token:
                raise Violation(f"{short(id_)} has the result of another attempt")
        if unknown := log.started.keys() - {row[:2] for row in rows}:
            raise Violation(f"{short(str(unknown))} ran without an attempt")
