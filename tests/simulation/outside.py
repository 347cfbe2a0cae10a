"""Surround the engine with PostgreSQL on the simulation's clock, and SQS as a list in memory."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
from botocore.exceptions import ClientError
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from signalbox.worker import lease
from tests.simulation.scheduler import Actor, Scheduler, Violation

TABLES = (
    "signalbox.jobs", "signalbox.job_executions", "signalbox.job_dependencies", "signalbox.job_groups",
    "signalbox.job_caps", "signalbox.dead_letter_jobs", "signalbox.audit_log", "signalbox.bulk_actions",
    "signalbox.signals", "sim.effects",
)  # fmt: skip
NEVER = 1e9
_ID = re.compile(r"0{8}-0000-7000-8000-0{4}(\d{8})")
# Of queries that change nothing: nothing is to be checked after them.
_READS = re.compile(r"\w+\.(list|find|read|show|next|pick|count|hold|note)(_\w+)?")


@cache
def _names() -> dict[str, str]:
    """Return the names of the engine's queries, by text."""
    modules = [module for name, module in sys.modules.items() if name.startswith("signalbox.")]
    return {
        text: f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in modules
        for name, text in getattr(module, "SQL", {}).items()
    }


@cache
def _older() -> dict[str, str]:
    """Map today's claim to that of an older release, which does not name the worker's lanes."""
    claim = lease.SQL["claim"]
    return {claim: claim.replace(",\n    %(lanes)s", "")}


def short(text: str) -> str:
    """Return the jobs that a text names, as j1 and so on."""
    return " ".join(dict.fromkeys(f"j{int(number)}" for number in _ID.findall(text)))


class Statement(psycopg.Cursor[TupleRow]):
    """Tell the trace what is executed."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        session = self.connection
        if query == "ROLLBACK":  # after which the driver would prepare all statements again
            session.pgconn.exec_(b"ROLLBACK")
            return self
        if isinstance(session, Session) and session.world is not None and not session.is_checking:
            session.says = _names().get(query, "statement")
            session.about = short(str(params))
            if session.world.current.process.is_older:
                query = _older().get(query, query)
        if options.get("prepare") is None:  # several at once, which can't be prepared, are bytes
            options["prepare"] = isinstance(query, str)
        return super().execute(query, params, **options)


class Session(psycopg.Connection[TupleRow]):
    """Share one connection: actors stop before each statement and after its commit."""

    world: Any = None
    says = about = ""
    is_checking = False
    told_time: float | None = None

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        world = self.world
        if world is None or self.is_checking:
            return super().wait(gen, interval, timeout)
        says, about = self.says or ("begin" if self._is_idle else "commit"), self.about
        self.says = self.about = ""
        if self._is_idle and says != "begin":
            self._stop_before()
        world.note(f"{says} {about}")
        try:
            answer = super().wait(gen, interval, timeout)
        except psycopg.errors.QueryCanceled:
            raise Violation(f"{says} goes on and on") from None
        if self._is_idle:
            self.is_checking = True
            try:
                if not _READS.fullmatch(says):
                    world.check()
            finally:
                self.is_checking = False
            world.endanger("after")
            world.cut_off("after")
        return answer

    @contextmanager
    def transaction(self, *args: Any, **options: Any) -> Iterator[psycopg.Transaction]:
        """Stop before BEGIN: in its middle the driver takes it for begun."""
        if self.world is not None and self._is_idle:
            self._stop_before()
        with super().transaction(*args, **options) as transaction:
            yield transaction

    def _stop_before(self) -> None:
        self.world.dawdle()
        self.world.endanger("before")
        self.world.cut_off("before")
        self.tell_time()

    @property
    def _is_idle(self) -> bool:
        return self.info.transaction_status == TransactionStatus.IDLE

    def tell_time(self) -> None:
        if self.told_time != self.world.now:
            self.told_time = self.world.now
            self.pgconn.exec_(f"SET sim.now = '{self.world.clock.isoformat()}'".encode())


def open_session(dsn: str) -> Session:
    """Open the session; its database becomes the simulation's."""
    session = Session.connect(dsn, autocommit=True, prepare_threshold=10**9, cursor_factory=Statement)
    session.execute(Path(__file__).with_name("clock.sql").read_bytes(), prepare=False)
    # An actor that stops before its statement keeps nobody from theirs.
    session.lock = nullcontext()  # type: ignore[assignment]
    return session


def enter(session: Session, world: Scheduler) -> None:
    """Give the session to the next seed."""
    session.world = None
    session.execute("TRUNCATE " + ", ".join(TABLES) + " RESTART IDENTITY CASCADE")
    session.world, session.told_time = world, None
    session.tell_time()


@dataclass
class Message:
    lane: str
    body: dict[str, str]
    visible_at: float


@dataclass
class Queue:
    """Stand for SQS, as the lanes call it and Lambda receives from it."""

    world: Scheduler
    messages: list[Message] = field(default_factory=list)
    idle: dict[Actor, tuple[str, ...]] = field(default_factory=dict)  # that wait for messages, and of which lanes

    def get_queue_url(self, QueueName: str) -> dict[str, str]:  # noqa: N803 - as boto3 has it
        return {"QueueUrl": QueueName}

    def get_queue_attributes(self, QueueUrl: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        self.world.dawdle()
        mine = [one for one in self.messages if QueueUrl.endswith(one.lane)]
        at_hand = sum(one.visible_at <= self.world.now for one in mine)
        counts = {"": at_hand, "NotVisible": len(mine) - at_hand, "Delayed": 0}
        return {"Attributes": {f"ApproximateNumberOfMessages{name}": number for name, number in counts.items()}}

    def send_message_batch(self, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:  # noqa: N803
        world, lane = self.world, QueueUrl.rpartition("-")[2]
        world.dawdle()
        world.endanger("before")
        if world.happens(world.faults.refuse_send):
            world.note("SQS refuses to take messages")
            raise ClientError({}, "SendMessageBatch")
        for entry in Entries:
            self._take(lane, json.loads(entry["MessageBody"]), entry["DelaySeconds"])
        world.note(f"sends {short(str(Entries))}")
        world.endanger("after")
        return {"Successful": Entries}

    def _take(self, lane: str, body: dict[str, str], delay: float) -> None:
        world, faults = self.world, self.world.faults
        if world.happens(faults.lose_message):
            return
        for _ in range(2 if world.happens(faults.double_message) else 1):
            late = world.chance.uniform(0, 300) if world.happens(faults.delay_message) else 0
            self.put(Message(lane, body, world.now + delay + late))

    def put(self, message: Message) -> None:
        self.messages.append(message)
        for actor in self.idle:
            actor.ready_at = min(actor.ready_at, message.visible_at)

    def has_idle(self, lane: str) -> bool:
        return any(lane in lanes for lanes in self.idle.values())

    def receive(self, lanes: tuple[str, ...], at_most: int, hidden_seconds: float) -> list[Message]:
        """Wait for a batch of one of these lanes; unless deleted, it returns after `hidden_seconds`."""
        world = self.world
        while not (found := [one for one in self.messages if one.lane in lanes and one.visible_at <= world.now]):
            self.idle[world.current] = lanes
            mine = [one.visible_at for one in self.messages if one.lane in lanes]
            world.pause(min(mine, default=NEVER) - world.now)
            del self.idle[world.current]
        lane = world.chance.choice(found).lane
        found = [one for one in found if one.lane == lane]
        batch = world.chance.sample(found, min(len(found), at_most))
        for one in batch:
            one.visible_at = world.now + hidden_seconds
        return batch

    def delete(self, batch: list[Message]) -> None:
        self.messages = [one for one in self.messages if not any(one is done for done in batch)]


# The engine remembers the queues of its clients: so these are always the same.
CLIENTS: Any = type("Clients", (SimpleNamespace,), {"__hash__": object.__hash__})(sqs=None)


class InlineExecutor:
    """Call at once what others would call in threads."""

    def __init__(self, _: int) -> None: ...

    def __enter__(self) -> InlineExecutor:
        return self

    def __exit__(self, *_: object) -> None: ...

    map = staticmethod(map)
