"""The laptop's queues behave as moto's own do, and no call walks unrelated messages."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from signalbox_laptop.aws import client
from signalbox_laptop.project import ROOT
from tests.support.deployed import moto

FEW, MANY = "20", "400"
READERS = 4


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with moto(tmp_path_factory.mktemp("stand-in")) as endpoint:
        yield endpoint


def said(*words: str) -> Any:
    command = [sys.executable, "-m", "tests.support.moto_queues", *words]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


def test_calls_take_as_many_steps_in_long_queues() -> None:
    few, many = said("taught", "steps", FEW, MANY)
    assert many == few


def test_moto_still_has_to_be_taught_queues() -> None:
    few, many = said("plain", "steps", FEW, "60")
    assert all(many[call] > few[call] for call in few)


def test_taught_queues_answer_as_motos_own() -> None:
    assert said("taught", "walk") == said("plain", "walk")


def test_long_poll_waits_for_delayed_message(endpoint: str) -> None:
    sqs = client("sqs", endpoint)
    url = sqs.create_queue(QueueName="delayed")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="late", DelaySeconds=1)
    (message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
    assert message["Body"] == "late"


def test_readers_at_once_share_messages(endpoint: str) -> None:
    sqs = client("sqs", endpoint)
    url = sqs.create_queue(QueueName="shared")["QueueUrl"]
    sent = [f"{batch}-{place}" for batch in range(20) for place in range(10)]
    for start in range(0, len(sent), 10):
        entries = [{"Id": body, "MessageBody": body} for body in sent[start : start + 10]]
        sqs.send_message_batch(QueueUrl=url, Entries=entries)

    def drain(_: int) -> list[str]:
        bodies: list[str] = []
        while found := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=3).get("Messages"):
            bodies += [message["Body"] for message in found]
        return bodies

    with ThreadPoolExecutor(READERS) as threads:
        read = [body for bodies in threads.map(drain, range(READERS)) for body in bodies]
    assert sorted(read) == sorted(sent)
