"""Answer CloudFormation, which asks the migrator through the resource `Migrations` in each deploy.

The deploy waits until the answer has come, and a FAILED rolls it back. So an answer is always sent, in time, and again
where it got lost. Its address is signed, and so is as secret as a password: no log and no error holds it.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from signalbox.errors import AnswerLost, PayloadRefused, SignalboxError
from signalbox.packs.payload import read_payload
from signalbox.postgres.error_details import describe
from signalbox.runtime.log import Logger

MOST_BYTES = 4096  # that CloudFormation takes
MOST_REASON = 2000
RESERVE_SECONDS = 30.0  # of the function's time, kept for the answer
PUT_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
RUNBOOK = "docs/runbook.md says what to do: A migration fails"
_LOOPBACK = "127.0.0.1"
_LAYER = re.compile(r"arn:[^:]*:lambda:[^:]*:[^:]*:layer:[^:]*:(\d{1,9})")
_LAYERS = {"engine": "Engine", "dependencies": "Dependencies", "packs": "Code"}  # and the properties that name them


class DeployRequest(BaseModel):
    """Read from CloudFormation's event what the answer needs. The event may get more fields."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    response_url: str = Field(alias="ResponseURL", repr=False, min_length=1)
    stack_id: str = Field(alias="StackId")
    request_id: str = Field(alias="RequestId")
    logical_id: str = Field(alias="LogicalResourceId")
    type: str = Field("", alias="RequestType")
    given_id: str = Field("", alias="PhysicalResourceId")
    properties: Any = Field(None, alias="ResourceProperties")

    @property
    def physical_id(self) -> str:
        """Return an id that never changes: a new one would make CloudFormation delete the old resource."""
        return self.given_id or "signalbox-migrations"

    @property
    def version(self) -> str | None:
        """Return the versions of the layers that the deploy brings, such as `engine 7, dependencies 2, packs 12`."""
        named = self.properties if isinstance(self.properties, dict) else {}
        found = {layer: _LAYER.fullmatch(str(named.get(name))) for layer, name in _LAYERS.items()}
        return ", ".join(f"{layer} {match[1]}" for layer, match in found.items() if match) or None


@dataclass(frozen=True, slots=True)
class DeployResult:
    """Say whether the deploy continues."""

    status: Literal["SUCCESS", "FAILED"]
    reason: str
    data: Mapping[str, str]

    def to_json(self, request: DeployRequest) -> bytes:
        """Return the answer as CloudFormation takes it, with the reason cut where it would be too long."""
        answer = {
            "Status": self.status,
            "Reason": self.reason[:MOST_REASON],
            "PhysicalResourceId": request.physical_id,
            "StackId": request.stack_id,
            "RequestId": request.request_id,
            "LogicalResourceId": request.logical_id,
            "Data": dict(self.data),
        }
        body = json.dumps(answer).encode()
        if len(body) > MOST_BYTES:
            answer["Reason"] = self.reason.encode("ascii", "replace").decode()[: MOST_REASON // 2]
            body = json.dumps(answer | {"Data": {}}).encode()
        return body


def is_deploy(event: object) -> bool:
    """Return whether CloudFormation asks. Only its events have a place for the answer."""
    return isinstance(event, dict) and bool({"RequestType", "ResponseURL"} & event.keys())


def serve(
    event: object, seconds_left: float, log: Logger, migrate: Callable[[float, str | None], DeployResult]
) -> dict[str, Any]:
    """Apply the migrations with a function that receives its seconds and the version, and answer CloudFormation.

    Raise only where no answer can be sent: Lambda then delivers the event again.
    """
    request = _read(event)
    answers = _DeployResponse(request, time.monotonic() + seconds_left, log)
    # If the work neither ends nor can be ended, the answer must not wait for it.
    last_call = threading.Timer(max(0.0, seconds_left - RESERVE_SECONDS / 2), answers.give_up)
    last_call.daemon = True
    last_call.start()
    try:
        answer = _decide(request, max(0.0, seconds_left - RESERVE_SECONDS), migrate)
    finally:
        last_call.cancel()
    answers.give(answer)
    return {"status": answer.status, "reason": answer.reason}


def _read(event: object) -> DeployRequest:
    request = read_payload(DeployRequest, event, "CloudFormation's event")
    parts = urlsplit(request.response_url)
    if parts.scheme != "https" and (parts.scheme, parts.hostname) != ("http", _LOOPBACK):
        raise PayloadRefused("CloudFormation's event refused: ResponseURL must be https")
    return request


def _decide(
    request: DeployRequest, seconds: float, migrate: Callable[[float, str | None], DeployResult]
) -> DeployResult:
    if request.type == "Delete":
        return DeployResult("SUCCESS", "the schema stays as it is", {})
    if request.type not in ("Create", "Update"):
        return DeployResult("FAILED", f"RequestType '{request.type[:20]}' is neither Create, Update nor Delete", {})
    try:
        return migrate(seconds, request.version)
    except SignalboxError as error:
        return DeployResult("FAILED", f"{type(error).__name__}: {error}; {RUNBOOK}", {})
    except Exception as error:
        # Other libraries' errors may hold a password: libpq repeats the pieces of a DSN that it can't read.
        fault = describe(error)
        return DeployResult("FAILED", f"the migrator failed with {fault['type']} at {fault.get('at')}; {RUNBOOK}", {})


class _DeployResponse:
    """Own the one answer that a request gets."""

    def __init__(self, request: DeployRequest, ends_at: float, log: Logger) -> None:
        self._request, self._ends_at, self._log = request, ends_at, log
        self._lock = threading.Lock()
        self._given = False

    def give(self, answer: DeployResult) -> None:
        with self._lock:
            if self._given:
                return
            self._send(answer)
            self._given = True
        ids = {"request_id": self._request.request_id, "status": answer.status, "reason": answer.reason}
        self._log.info("deploy.answered", extra=ids)

    def give_up(self) -> None:
        reason = f"the migrator ran out of time while the database still executes its statement; {RUNBOOK}"
        try:
            self.give(DeployResult("FAILED", reason, {}))
        except AnswerLost as error:
            self._log.error("deploy.answer_lost", extra={"request_id": self._request.request_id, "error": str(error)})

    def _send(self, answer: DeployResult) -> None:
        body, pause, tries = answer.to_json(self._request), FIRST_PAUSE, 0
        while True:
            tries += 1
            fault, may_heal = _put(self._request.response_url, body)
            if fault is None:
                return
            if not may_heal or time.monotonic() + pause + PUT_SECONDS > self._ends_at:
                raise AnswerLost(
                    f"CloudFormation's answer to request {self._request.request_id} ({answer.status}) was not taken, "
                    f"{fault}, after {tries} tries: the deploy waits until its ServiceTimeout, and takes itself back"
                )
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _put(url: str, body: bytes) -> tuple[str | None, bool]:
    """Return what went wrong, without the address, and whether another try may help."""
    # The address is signed for a request without a content type.
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=PUT_SECONDS) as answer:  # noqa: S310 - checked when it was read
            answer.read()
        return None, False
    except urllib.error.HTTPError as error:
        error.close()
        return f"status {error.code}", error.code >= 500 or error.code in (408, 429)
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}", True
    except ValueError:
        return "its address can't be read", False
