"""Run moto's queues on a clock that only calls move, in an own process: moto changes what imports it.

`python -m tests.support.moto_queues plain|taught walk` prints what queues answer to random calls, and with `steps`
and sizes, how many steps each call takes in queues of those sizes.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any

from signalbox_laptop.moto.queues import patch_queues

WALKS, CALLS = 20, 200

models: Any = import_module("moto.sqs.models")


class QueuePair:
    """Hold a queue and its dead-letter queue."""

    def __init__(self, name: str, *, fifo: bool = False) -> None:
        self.now = 1_000_000.0
        models.unix_time, models.unix_time_millis = lambda: self.now, lambda: self.now * 1000
        self.backend = models.sqs_backends["123456789012"]["us-east-1"]
        self.fifo = fifo
        kind = {"FifoQueue": "true"} if fifo else {}
        self.name, self.dead = (f"{part}-{name}{'.fifo' * fifo}" for part in ("queue", "dead"))
        target = self.backend.create_queue(self.dead, **kind).queue_arn
        redrive = json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": 3})
        self.backend.create_queue(self.name, RedrivePolicy=redrive, **kind)
        self.handles: list[str] = []

    def send(self, body: str, group: str, delay: int = 0) -> None:
        order = {"deduplication_id": body} if self.fifo else {"delay_seconds": delay}
        self.backend.send_message(self.name, body, group_id=group, **order)

    def receive(self, queue: str, count: int, visibility: int) -> list[Any]:
        found = self.backend.receive_message(queue, count, 0, visibility)
        self.handles += [message.receipt_handle for message in found]
        return [(message.body, message.approximate_receive_count, message.group_id) for message in found]

    def delete(self, queue: str, handle: str) -> list[Any]:
        return list(self.backend.delete_message_batch(queue, [{"Id": "1", "ReceiptHandle": handle}])[0])

    def change(self, queue: str, handle: str, visibility: int) -> list[Any]:
        entry = {"Id": "1", "ReceiptHandle": handle, "VisibilityTimeout": visibility}
        return list(self.backend.change_message_visibility_batch(queue, [entry])[0])

    def purge(self, queue: str) -> None:
        self.now += 60  # as long as SQS refuses a second one
        self.backend.purge_queue(queue)

    def count(self, queue: str) -> list[int]:
        held = self.backend.get_queue_attributes(queue, ["All"])
        return [held[f"ApproximateNumberOfMessages{which}"] for which in ("", "Delayed", "NotVisible")]


def walk(seed: int) -> list[Any]:
    """Return a queue's answers to random calls, and its count of messages after each."""
    dice = random.Random(seed)
    queues = QueuePair(str(seed), fifo=seed % 4 == 0)
    return [
        (_call(queues, dice, str(number)), queues.count(queues.name), queues.count(queues.dead))
        for number in range(CALLS)
    ]


def _call(queues: QueuePair, dice: random.Random, body: str) -> Any:
    queues.now += dice.choice([0, 0.25, 1, 5])
    queue = dice.choice([queues.name, queues.name, queues.dead])
    handle = dice.choice(queues.handles[-20:] or ["unknown"])
    match dice.choices(["send", "receive", "delete", "change", "purge"], [40, 30, 15, 15, 1])[0]:
        case "send":
            return queues.send(body, dice.choice("abc"), dice.choice([0, 0, 3]))
        case "receive":
            return queues.receive(queue, dice.randint(1, 10), dice.choice([0, 2, 10]))
        case "delete":
            return queues.delete(queue, handle)
        case "change":
            return queues.change(queue, handle, dice.choice([0, 1, 20]))
        case _:
            return queues.purge(queue)


def steps(size: int) -> dict[str, int]:
    """Count the bytecodes of each call with so many messages visible, in flight and delayed each."""
    queues = QueuePair(f"of-{size}")
    for _ in range(size):
        queues.send("in flight", "a")
        queues.receive(queues.name, 1, 3600)
        queues.send("delayed", "a", delay=900)
    for _ in range(size):
        queues.send("visible", "a")
    return {
        "send": _steps_of(lambda: queues.send("body", "a")),
        "receive": _steps_of(lambda: queues.receive(queues.name, 10, 30)),
        "change": _steps_of(lambda: queues.change(queues.name, queues.handles[-1], 60)),
        "delete": _steps_of(lambda: queues.delete(queues.name, queues.handles[-1])),
        "count": _steps_of(lambda: queues.count(queues.name)),
        "wait": _steps_of(lambda: queues.backend.get_queue(queues.name).wait_for_messages(1)),
    }


def _steps_of(call: Callable[[], object]) -> int:
    """Count only steps of moto's queues and ours: drawing random numbers takes a varying number."""
    taken = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal taken
        if not frame.f_code.co_filename.endswith(("sqs/models.py", "moto_queues.py")):
            return None
        frame.f_trace_opcodes = True
        taken += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return taken


if __name__ == "__main__":
    lesson, what, *sizes = sys.argv[1:]
    if lesson == "taught":
        patch_queues()
    answer = [walk(seed) for seed in range(WALKS)] if what == "walk" else [steps(int(size)) for size in sizes]
    print(json.dumps(answer))
