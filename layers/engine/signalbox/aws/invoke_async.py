"""Ask Lambda for a run in an invocation of its own: a continuation, a catch-up, a slot of a backfill."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from signalbox.aws.clients import Clients
from signalbox.aws.errors import unavailable
from signalbox.packs.task import Task


@dataclass(frozen=True, slots=True)
class FunctionInvoker:
    """Hand runs to the functions of this stack."""

    clients: Clients
    stack: str

    def send(self, task: Task, payload: dict[str, Any]) -> None:
        """Queue the payload for the task's function; once this returns, Lambda has it."""
        function = f"{self.stack}-{task.function}"
        with unavailable(f"a run of '{task.name}' could not be sent to {function}"):
            self.invoke(function, payload)

    def invoke(self, function: str, payload: object) -> None:
        """Queue the payload for a function, by its name; raise what boto3 raises."""
        body = json.dumps(payload).encode()
        self.clients.lambda_.invoke(FunctionName=function, InvocationType="Event", Payload=body)

    def rerun(
        self,
        task: Task,
        now: datetime,
        trigger: str,
        request: dict[str, Any] | None = None,
        **origin: Any,
    ) -> None:
        """Ask for a run as if it were `now`; `request` is the rest of its payload."""
        asked = dict(request or {})
        asked["origin"] = {**asked.get("origin", {}), **origin, "trigger": trigger}
        self.send(task, {"task": task.name, "reference_time": now.isoformat(), **asked})
