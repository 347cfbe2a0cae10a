"""Ask, watch and kill the laptop's stack for tests, and look for what is left of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psutil
import psycopg
import urllib3

from signalbox_laptop.aws import client
from signalbox_laptop.home import Home, StackState
from signalbox_laptop.orphan_cleanup import HOME_VARIABLE
from signalbox_laptop.processes import runs, wait_for_end

AT = "2026-03-29T00:45:00Z"


def quiet(_: str) -> None:
    pass


def control(state: StackState, method: str, call: str, **body: Any) -> dict[str, Any]:
    answer = urllib3.request(method, f"{state.endpoint}/_signalbox/{call}", json=body or None, timeout=60)
    assert answer.status == 200, answer.data
    return dict(answer.json())


def tick(state: StackState, *rules: str) -> Any:
    """Fire, and wait for all that follows."""
    fired = control(state, "POST", "tick", at=AT, rules=rules)["fired"]
    assert control(state, "GET", "idle?timeout=30")["idle"] is True
    return fired


def supervisor_of(home: Path) -> psutil.Process:
    supervisor = Home(home).supervisor()
    assert supervisor is not None
    return supervisor


def seen(state: StackState) -> list[Any]:
    with psycopg.connect(state.database) as connection:
        return [row[0] for row in connection.execute("SELECT event FROM seen ORDER BY id").fetchall()]


def send_to_inbox(state: StackState, body: str) -> None:
    (stack,) = client("cloudformation", state.endpoint).describe_stacks(StackName=state.stack)["Stacks"]
    (url,) = [output["OutputValue"] for output in stack["Outputs"] if output["OutputKey"] == "InboxUrl"]
    client("sqs", state.endpoint).send_message(QueueUrl=url, MessageBody=body)


def kill(state: StackState) -> None:
    supervisor = psutil.Process(state.pid)
    supervisor.kill()
    assert wait_for_end(supervisor, 10)


def belonging_to(home: Path) -> list[psutil.Process]:
    """Return every process on this machine that belongs to the home by its variables or command."""
    return [process for process in psutil.process_iter() if process.pid != os.getpid() and _belongs(process, home)]


def _belongs(process: psutil.Process, home: Path) -> bool:
    try:
        environ, command = process.environ(), " ".join(process.cmdline())
        ours = str(home) in (environ.get(HOME_VARIABLE), environ.get("LAMBDA_TASK_ROOT", "")[: len(str(home))])
        return runs(process) and (ours or str(home) in command)
    except (psutil.Error, OSError):
        return False
