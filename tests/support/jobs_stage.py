"""A stage with the tests' job types and lanes of its own, which plays the lanes' part towards the worker."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import psycopg

from signalbox.packs.job_type import Lane
from signalbox.packs.registries import JobTypeRegistry
from signalbox.publish.lanes import Lanes
from signalbox.publish.publisher import messages_of
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob, Submitted
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.stage import Stage

WORKER = 360.0  # seconds, as the template gives it; with too few a worker begins nothing
RECEIVES = "10"  # of a message, before it goes to the dead-letter queue


class JobsStage(Stage):
    """Owns an engine whose stack has a name, and so queues, of the test's own."""

    def __init__(self, dsn: str, invokes: InvokeRecorder, job_types: JobTypeRegistry, **environ: str) -> None:
        self.stack = f"jobs-{uuid4().hex[:12]}"
        super().__init__(dsn, invokes, **({"stack": self.stack} | environ))
        self.engine = replace(self.engine, resources=replace(self.engine.resources, job_types=job_types))
        self.job_types = job_types
        self.sqs = self.engine.resources.clients.sqs
        for lane in Lane:
            make_lane(self.sqs, f"{self.stack}-{lane}")

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The engine's own."""
        return self.engine.resources.database.connection()

    @property
    def lanes(self) -> Lanes:
        return Lanes(self.engine.resources.clients, self.stack)

    def submit(self, *jobs: NewJob | str, at: datetime | None = None) -> list[Submitted]:
        """Stores them, by default as of now, and sends nothing. A bare name is a job of that type."""
        new = [NewJob(job_type=job) if isinstance(job, str) else job for job in jobs]
        return submit(self.connection, self.job_types, new, at or datetime.now(UTC))

    def send_jobs(self, submitted: Iterable[Submitted]) -> int:
        return self.lanes.send(messages_of(list(submitted)))

    def work(self, event: dict[str, Any], *, seconds: float = WORKER, request_id: str = "") -> dict[str, Any]:
        """One invocation of the worker, at the clock's own time, which is the database's too."""
        return self.engine.work(event, self.invocation(datetime.now(UTC), seconds, request_id))

    def work_off(self, *jobs: NewJob | str, seconds: float = WORKER) -> list[Submitted]:
        """Submits them and works on them as one batch."""
        submitted = self.submit(*jobs)
        self.work(sqs_event(submitted), seconds=seconds)
        return submitted

    def receive(self, lane: str, *, dead: bool = False) -> list[dict[str, Any]]:
        """Takes off what lies visible in a lane, or in its dead-letter queue: each body with its group as `group`."""
        url = self.url_of(lane, dead=dead)
        found: list[dict[str, Any]] = []
        while messages := self._receive(url):
            for message in messages:
                group = message.get("Attributes", {}).get("MessageGroupId")
                found.append(json.loads(message["Body"]) | {"group": group})
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found

    def delayed(self, lane: str) -> int:
        """How many messages of a lane still wait for their DelaySeconds to pass."""
        name: Any = "ApproximateNumberOfMessagesDelayed"
        answer = self.sqs.get_queue_attributes(QueueUrl=self.url_of(lane), AttributeNames=[name])
        return int(answer["Attributes"][name])

    def url_of(self, lane: str, *, dead: bool = False) -> str:
        return self.sqs.get_queue_url(QueueName=f"{self.stack}-{lane}{'-dlq' if dead else ''}")["QueueUrl"]

    def status_of(self, job_id: str) -> str:
        row = self.connection.execute("SELECT status FROM signalbox.jobs WHERE id = %s", (job_id,)).fetchone()
        assert row is not None, f"there is no job {job_id}"
        return str(row[0])

    def drop_lanes(self) -> None:
        """Queues that are left behind slow the stand-in down for the tests that follow."""
        for lane in Lane:
            for dead in (False, True):
                with suppress(self.sqs.exceptions.QueueDoesNotExist):
                    self.sqs.delete_queue(QueueUrl=self.url_of(lane, dead=dead))

    def _receive(self, url: str) -> Any:
        answer = self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["MessageGroupId"]
        )
        return answer.get("Messages")


def make_lane(sqs: Any, name: str) -> str:
    """A queue with its dead-letter queue, as the template has them; answers its URL."""
    dead = sqs.create_queue(QueueName=f"{name}-dlq")["QueueUrl"]
    wanted = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": wanted, "maxReceiveCount": RECEIVES})
    made: str = sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": redrive})["QueueUrl"]
    return made


def sqs_event(jobs: Iterable[Any], queue: str = "signalbox-normal", receives: int = 1) -> dict[str, Any]:
    """What SQS gives to Lambda for these: jobs (anything with id and job_type), or bodies as they are."""
    return {"Records": [_record(job, queue, receives) for job in jobs]}


def _record(job: Any, queue: str, receives: int) -> dict[str, Any]:
    body = job if isinstance(job, str) else json.dumps({"job_id": job.id, "job_type": job.job_type})
    return {
        "messageId": str(uuid4()),
        "receiptHandle": uuid4().hex,
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": str(receives),
            "SentTimestamp": "1773144000000",
            "SenderId": "AROATEST",
            "ApproximateFirstReceiveTimestamp": "1773144000001",
        },
        "messageAttributes": {},
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
        "awsRegion": "us-east-1",
    }
