"""Submit the demo's jobs: webhooks to a receiver on this machine, through the stack's lanes and its worker.

One arrives at once, one is retried, and one fails for good, is redriven once its receiver is mended, and arrives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signalbox_cli.target.target import Target
from signalbox_cli.views.table import Column, Row
from signalbox_cli.views.times import show_duration
from signalbox_laptop.aws import client
from signalbox_laptop.home import StackState
from signalbox_laptop.stand_ins.webhook_receiver import WebhookReceiver

COLUMNS = (Column("job"), Column("attempt", right=True), Column("status"), Column("took", right=True))
# Map each webhook's event to the receiver's path.
_EVENTS = {"order.paid": "/well", "order.shipped": "/busy", "order.refunded": "/broken"}
_LAST = "order.refunded"
# Without these, a stack sends webhooks only by https and only to the internet.
_ALLOWED = {"WebhookAllowHttp": "on", "WebhookPorts": "1024-65535", "WebhookAllowedNetworks": "127.0.0.0/8"}
_FINAL = ("completed", "failed", "cancelled")
_PATIENCE_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 0.1

Found = Mapping[str, Any]


def parameters_for(template: Path) -> dict[str, str]:
    """Return the parameters that let the template's stack reach a receiver on this machine."""
    from signalbox_laptop.deploy.template import read_template  # only the extra `laptop` installs what it needs

    declared = read_template(template).get("Parameters") or {}
    return {name: value for name, value in _ALLOWED.items() if name in declared}


@dataclass(slots=True)
class DemoJobs:
    """Own the receiver while it is entered. `found` is the last answer of `show_job`, by event."""

    receiver: WebhookReceiver = field(default_factory=WebhookReceiver)
    ids: dict[str, str] = field(default_factory=dict)
    found: dict[str, Found] = field(default_factory=dict)

    def __enter__(self) -> DemoJobs:
        self.receiver.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.receiver.stop()

    def submit(self, state: StackState, target: Target) -> None:
        secret = f"{state.stack}/webhooks/demo"
        client("secretsmanager", state.endpoint).create_secret(Name=secret, SecretString="a key to sign with")
        jobs = [
            {
                "job_type": "deliver_webhook",
                "name": f"webhook {event}",
                "payload": {"url": self.receiver.url + path, "event_type": event, "event": {}, "secret": secret},
            }
            for event, path in _EVENTS.items()
        ]
        submitted = target.operate("submit_jobs", jobs=jobs, by="demo")["jobs"]
        self.ids = {event: job["id"] for event, job in zip(_EVENTS, submitted, strict=True)}

    def redrive(self, target: Target) -> None:
        """Redrive the job that fails for good, once it has failed: the next dispatch_jobs sends it."""
        self._await(target, _LAST)
        self.receiver.mend()
        if letter := self.found[_LAST]["dead_letter"]:
            target.operate("redrive", ids=[letter["id"]], by="demo", reason="the receiver is mended")

    def finish(self, target: Target) -> None:
        """Wait until all of them have ended."""
        for event in _EVENTS:
            self._await(target, event)

    def failures(self) -> list[str]:
        """Return a line for each job that did not complete."""
        jobs = ((event, found["job"]["status"]) for event, found in self.found.items())
        return [f"webhook {event} is {status}, and not completed" for event, status in jobs if status != "completed"]

    def rows(self) -> list[Row]:
        """Return a row per attempt, and one for what was done about a dead letter."""
        return [row for event in _EVENTS if event in self.found for row in _rows(event, self.found[event])]

    def as_json(self) -> list[dict[str, Any]]:
        return [
            {"job": found["job"], "executions": found["executions"]} for found in map(self.found.get, _EVENTS) if found
        ]

    def _await(self, target: Target, event: str) -> None:
        def look() -> bool:
            self.found[event] = target.operate("show_job", id=self.ids[event])
            return self.found[event]["job"]["status"] in _FINAL

        _wait_until(look)


def _wait_until(look: Callable[[], bool]) -> None:
    """Wait for a limited time; if it runs out, the jobs' states tell what is missing."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while not look() and time.monotonic() < until:
        time.sleep(_LOOK_AGAIN_SECONDS)


def _rows(event: str, found: Found) -> Iterator[Row]:
    for number, one in enumerate(reversed(found["executions"])):
        if number and found["dead_letter"]:
            yield Row(["", "", "redriven", ""], "the receiver is mended")
        name = f"webhook {event}" if not number else ""
        took = show_duration(one["duration_ms"]) if one["duration_ms"] is not None else ""
        yield Row([name, str(one["attempt_number"]), one["status"], took], one["error_message"] or "")
