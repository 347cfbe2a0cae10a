"""CloudFormation's question to the migrator, which the resource `Migrations` asks in each deploy, and the answer.

Until the answer has come the deploy waits, and a FAILED takes it back: so an answer is sent whatever happens, in time,
and again where it got lost. The address that it goes to is signed, as good as a password: no log, no error holds it.
"""

from __future__ import annotations

import http.client
import json
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
RESERVE_SECONDS = 30.0  # of the function's time, for the answer
PUT_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
RUNBOOK = "docs/runbook.md says what to do: A migration fails"
_LOOPBACK = "127.0.0.1"


class DeployRequest(BaseModel):
    """What of CloudFormation's event the answer needs. It may hold more tomorrow."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    response_url: str = Field(alias="ResponseURL", repr=False, min_length=1)
    stack_id: str = Field(alias="StackId")
    request_id: str = Field(alias="RequestId")
    logical_id: str = Field(alias="LogicalResourceId")
    type: str = Field("", alias="RequestType")
    given_id: str = Field("", alias="PhysicalResourceId")

    @property
    def physical_id(self) -> str:
        """The same for ever: another one would tell CloudFormation to delete what had the one before."""
        return self.given_id or "signalbox-migrations"


@dataclass(frozen=True, slots=True)
class DeployResult:
    """What becomes of the deploy."""

    status: Literal["SUCCESS", "FAILED"]
    reason: str
    data: Mapping[str, str]

    def to_json(self, request: DeployRequest) -> bytes:
        """As CloudFormation takes it, the reason cut where it would be too long."""
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
    """Is it CloudFormation that asks? Its events alone have a place for the answer."""
    return isinstance(event, dict) and bool({"RequestType", "ResponseURL"} & event.keys())


def serve(event: object, seconds_left: float, log: Logger, migrate: Callable[[float], DeployResult]) -> dict[str, Any]:
    """Has the migrations applied, by a function that is told how many seconds it has, and answers CloudFormation.

    Raises only where nobody can be answered: Lambda then brings the event again.
    """
    request = _read(event)
    answers = _DeployResponse(request, time.monotonic() + seconds_left, log)
    # Where the work neither ends nor can be ended, the answer must not wait for it.
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


def _decide(request: DeployRequest, seconds: float, migrate: Callable[[float], DeployResult]) -> DeployResult:
    if request.type == "Delete":
        return DeployResult("SUCCESS", "the schema stays as it is", {})
    if request.type not in ("Create", "Update"):
        return DeployResult("FAILED", f"RequestType '{request.type[:20]}' is neither Create, Update nor Delete", {})
    try:
        return migrate(seconds)
    except SignalboxError as error:
        return DeployResult("FAILED", f"{type(error).__name__}: {error}; {RUNBOOK}", {})
    except Exception as error:
        # What others' errors say may hold a password: of a DSN that can't be read, libpq repeats the pieces.
        fault = describe(error)
        return DeployResult("FAILED", f"the migrator met {fault['type']} at {fault.get('at')}; {RUNBOOK}", {})


class _DeployResponse:
    """Owns the one answer that a request gets."""

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
        reason = f"the migrator's time is over, and the database does not let go; {RUNBOOK}"
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
    """What went wrong, without the address, and whether another try may help."""
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
