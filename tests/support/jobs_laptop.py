"""Submit jobs over a laptop stack's database and send them to its lanes, as its users do."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from signalbox.engine_pack import ENGINE
from signalbox.packs.registries import JobTypeRegistry
from signalbox.publish.lanes import Lanes
from signalbox.publish.publisher import messages_of
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted
from signalbox_laptop.aws import client
from signalbox_laptop.home import StackState
from tests.support.laptop import control

FINAL = ("completed", "failed", "cancelled")


class _Clients:
    """Hold the one client of the engine's that lanes need."""

    def __init__(self, endpoint: str) -> None:
        self.sqs = client("sqs", endpoint)


@dataclass(frozen=True, slots=True)
class JobsLaptop:
    """Hold a stack that is up, and a connection to its database."""

    state: StackState
    db: psycopg.Connection[Any]
    lanes: Lanes

    def submit(self, *jobs: NewJob, ago: timedelta = timedelta(0)) -> list[Submitted]:
        """Store and commit, without sending."""
        return submit(self.db, JobTypeRegistry(ENGINE.job_types), jobs, datetime.now(UTC) - ago)

    def begin(self, *jobs: NewJob) -> list[Submitted]:
        """Store, commit and send."""
        submitted = self.submit(*jobs)
        assert self.lanes.send(messages_of(submitted)) == len(jobs)
        return submitted

    def work_off(self, *jobs: NewJob) -> list[Submitted]:
        """Store, send, and wait until nothing is under way."""
        submitted = self.begin(*jobs)
        self.wait_until_idle()
        return submitted

    def wait_until_idle(self) -> None:
        """Wait until nothing is under way and no lane holds messages that could be read."""
        assert control(self.state, "GET", "idle?timeout=50")["idle"] is True

    def archive(self, **event: Any) -> dict[str, Any]:
        """Return the archiver's answer."""
        return self.invoke("archiver", event)

    def invoke(self, function: str, event: object) -> dict[str, Any]:
        lambda_ = client("lambda", self.state.endpoint)
        answered = lambda_.invoke(FunctionName=f"{self.state.stack}-{function}", Payload=json.dumps(event).encode())
        answer: dict[str, Any] = json.loads(answered["Payload"].read())
        assert "FunctionError" not in answered, answer
        return answer

    def column(self, name: str, jobs: Sequence[Submitted]) -> list[Any]:
        """Return one column of the jobs, in their order."""
        ids = [job.id for job in jobs]
        rows = self.db.execute("SELECT id::text, to_jsonb(j) FROM signalbox.jobs AS j WHERE id = ANY (%s)", (ids,))
        found = {id_: row[name] for id_, row in rows}
        return [found[id_] for id_ in ids]

    def statuses(self, jobs: Sequence[Submitted]) -> dict[str, int]:
        return dict(Counter(self.column("status", jobs)))

    def executions(self, *jobs: Submitted) -> list[dict[str, Any]]:
        """Return the executions in the order of their start."""
        rows = self.db.execute(
            "SELECT to_jsonb(x) FROM signalbox.job_executions AS x WHERE job_id = ANY (%s) ORDER BY started_at",
            ([job.id for job in jobs],),
        )
        return [row for (row,) in rows]

    def await_final(self, job: Submitted, seconds: float = 30) -> str:
        """Return a job's final status, though at times no worker holds it and no lane shows it."""
        deadline = time.monotonic() + seconds
        while (status := str(self.column("status", [job])[0])) not in FINAL:
            assert time.monotonic() < deadline, f"job {job.id} is still {status} after {seconds} s"
            self.wait_until_idle()
            time.sleep(0.05)
        return status

    def await_dead_letter(self, seconds: float = 30, **columns: str) -> dict[str, Any]:
        """Return the dead letter with these values, once it is there."""
        deadline = time.monotonic() + seconds
        while not (found := self.dead_letters(**columns)):
            assert time.monotonic() < deadline, f"no dead letter with {columns} after {seconds} s"
            self.wait_until_idle()
            time.sleep(0.05)
        (letter,) = found
        return letter

    def dead_letters(self, **columns: str) -> list[dict[str, Any]]:
        """Return those whose columns have these values, oldest first."""
        rows = self.db.execute("SELECT to_jsonb(d) FROM signalbox.dead_letter_jobs AS d ORDER BY created_at").fetchall()
        return [row for (row,) in rows if all(row[name] == value for name, value in columns.items())]

    def hold(self, queue: str) -> dict[str, int]:
        """Count a queue's messages: visible, in somebody's hand, delayed."""
        names: Any = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
        url = self.url_of(queue)
        held = client("sqs", self.state.endpoint).get_queue_attributes(QueueUrl=url, AttributeNames=names)
        kinds = ("visible", "in_hand", "delayed")
        return {kind: int(held["Attributes"][name]) for kind, name in zip(kinds, names, strict=True)}

    def url_of(self, queue: str) -> str:
        sqs = client("sqs", self.state.endpoint)
        return str(sqs.get_queue_url(QueueName=f"{self.state.stack}-{queue}")["QueueUrl"])

    @contextmanager
    def attributes(self, queue: str, **changed: str) -> Iterator[None]:
        """Give a queue other attributes until the block ends."""
        sqs, url = client("sqs", self.state.endpoint), self.url_of(queue)
        before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(changed))["Attributes"]
        sqs.set_queue_attributes(QueueUrl=url, Attributes=changed)
        try:
            yield
        finally:
            sqs.set_queue_attributes(QueueUrl=url, Attributes=before)


@contextmanager
def jobs_laptop(state: StackState) -> Iterator[JobsLaptop]:
    clients: Any = _Clients(state.endpoint)
    with psycopg.connect(state.database, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        yield JobsLaptop(state, connection, Lanes(clients, state.stack))
