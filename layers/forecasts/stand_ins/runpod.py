"""Stand in for RunPod's serverless endpoints: run, status, cancel and health, and the ways in which they fail.

It accepts one key, and computes nothing: a job waits in the queue until a call sets its state. `PUT
/_stand_in/faults` with a list of faults makes calls fail, `PUT /_stand_in/jobs/{id}` with a status (and an error) ends
a job, `DELETE` of the same loses it, and `GET /_stand_in/jobs` shows all, as the demo's story needs them.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from signalbox_laptop.lambda_api.http_server import HttpServer, Request, Response
from signalbox_laptop.stand_ins.faults import Fault, Faults

KEY = "rpa_laptop"
FINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT")
_CONTROL = "/_stand_in/"
_CALL = re.compile(r"/v2/(?P<endpoint>[^/]+)/(?P<name>run|status|cancel|health)(/(?P<id>[^/]+))?")

Job = dict[str, Any]


class RunPodStandIn:
    """Own the server. `jobs` are the jobs it has taken, `faults` the failures it is to show."""

    def __init__(self, port: int = 0, *, endpoint: str = "laptop", clock: Callable[[], float] = time.time) -> None:
        self.endpoint, self.faults = endpoint, Faults()
        self.jobs: dict[str, Job] = {}
        self.calls: deque[tuple[str, str]] = deque(maxlen=1000)  # name of the call and job's id
        self.during: Callable[[], object] | None = None  # called while a call is being answered
        self._clock = clock
        self._lock = threading.Lock()
        self._server = HttpServer(port, self._answer)

    @property
    def url(self) -> str:
        """Return the address that stands for https://api.runpod.ai/v2."""
        return f"http://{self._server.address}/v2"

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self.faults.end()
        self._server.stop()

    @property
    def inputs(self) -> list[Any]:
        """Return what it was asked to compute, in order of arrival."""
        return [job["input"] for job in list(self.jobs.values())]

    def add(self, status: str = "IN_PROGRESS", *, error: str | None = None, job_id: str = "") -> str:
        """Add a job that existed before."""
        job_id = job_id or f"{uuid4()}-u1"
        job: Job = {"id": job_id, "status": status, "error": error, "input": None, "policy": {}, "at": self._clock()}
        self.jobs[job_id] = job
        return job_id

    def tell(self, job_id: str, status: str, error: str | None = None) -> None:
        """Set what has become of a job."""
        self.jobs[job_id] |= {"status": status, "error": error}

    def lose(self, job_id: str) -> None:
        """Lose a job, as after its time to live."""
        del self.jobs[job_id]

    def _answer(self, request: Request) -> Response | None:
        if request.path.startswith(_CONTROL):
            return self._control(request)
        call = _CALL.fullmatch(request.path)
        self.calls.append((call["name"] if call else request.path, (call and call["id"]) or ""))
        fault = self.faults.meet(request)
        if fault is not None and not fault.lost:
            return _fail(fault)
        response = self._serve(request, call)
        if self.during is not None:
            self.during()
        return None if fault is not None else response

    def _serve(self, request: Request, call: re.Match[str] | None) -> Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return _json(401, {"error": "invalid api key"})
        if call is None or call["endpoint"] != self.endpoint:
            return _json(404, {"error": "endpoint not found"})
        with self._lock:
            self._expire()
            if call["name"] == "health":
                return _json(200, self._health())
            if (request.method, call["name"]) == ("POST", "run"):
                return self._run(json.loads(request.body))
            job = self.jobs.get(call["id"] or "")
            if job is None:
                return _json(404, {"error": "job not found"})
            return self._cancel(job) if call["name"] == "cancel" else _json(200, _shown(job))

    def _run(self, asked: Any) -> Response:
        if not isinstance(asked, dict) or "input" not in asked:
            return _json(400, {"error": "input is required"})
        job_id = self.add("IN_QUEUE")
        self.jobs[job_id] |= {"input": asked["input"], "policy": asked.get("policy", {})}
        return _json(200, {"id": job_id, "status": "IN_QUEUE"})

    def _cancel(self, job: Job) -> Response:
        if job["status"] not in FINAL:
            job["status"] = "CANCELLED"
        return _json(200, _shown(job))

    def _expire(self) -> None:
        for job in list(self.jobs.values()):
            if self._clock() - job["at"] > job["policy"].get("ttl", 86_400_000) / 1000:
                del self.jobs[job["id"]]

    def _health(self) -> Any:
        states = Counter(job["status"] for job in self.jobs.values())
        jobs = {"completed": "COMPLETED", "failed": "FAILED", "inProgress": "IN_PROGRESS", "inQueue": "IN_QUEUE"}
        workers = {"idle": 1, "initializing": 0, "ready": 1, "running": 0, "throttled": 0, "unhealthy": 0}
        return {"jobs": {name: states[state] for name, state in jobs.items()} | {"retried": 0}, "workers": workers}

    def _control(self, request: Request) -> Response:
        """Take instructions from outside."""
        what, _, job_id = request.path.removeprefix(_CONTROL).partition("/")
        try:
            return _json(200, self._told(request.method, what, job_id, json.loads(request.body or b"null")))
        except (KeyError, TypeError, ValueError) as error:
            return _json(400, {"message": f"{request.method} {request.path}: {error!r}"})

    def _told(self, method: str, what: str, job_id: str, given: Any) -> Any:
        if what == "faults":
            self.faults.replace(Fault.of(fault) for fault in given)
            return {"faults": len(given)}
        if what != "jobs":
            raise ValueError("there are faults and jobs")
        if method == "PUT" and job_id in self.jobs:
            self.tell(job_id, **given)
        elif method == "PUT":
            self.add(**given, job_id=job_id)
        elif method == "DELETE":
            self.lose(job_id)
        return {"jobs": list(self.jobs.values())}


def _shown(job: Job) -> Any:
    """Return the job as /status shows it."""
    shown = {"id": job["id"], "status": job["status"], "delayTime": 100}
    if job["status"] in FINAL:
        shown["executionTime"] = 1000
    if job["status"] == "COMPLETED":
        shown["output"] = {}
    if job["error"] is not None:
        shown["error"] = job["error"]
    return shown


def _fail(fault: Fault) -> Response:
    extra = [("Retry-After", fault.retry_after)] if fault.retry_after is not None else []
    response = _json(fault.status, {"error": "as the stand-in was told"})
    return Response(response.status, response.body, [*response.headers, *extra])


def _json(status: int, body: Any) -> Response:
    return Response(status, json.dumps(body).encode(), [("Content-Type", "application/json")])
