"""List the routes of the HTTP API: each is an operation, with what its path says and how its answer is shown.

The operation says who may ask for it and checks what is given. A test holds the list against a table of roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

from pydantic.fields import FieldInfo

from signalbox.api.errors import MethodRefused, RouteUnknown
from signalbox.errors import PayloadRefused
from signalbox.operate.filters import DeadLetterFilter, JobFilter
from signalbox.operations import OPERATIONS, Operation
from signalbox.packs.payload import Payload
from signalbox.packs.suggest import nearest

Json = dict[str, Any]
Shape = Literal["plain", "one", "job", "text"]
WHO = frozenset({"by", "requested_by"})  # fields that say who asks: the token does
_NO_CAP = {"max_running": None, "rate": None, "per_seconds": None}
_FILTERS = frozenset({*JobFilter.model_fields, *DeadLetterFilter.model_fields})


@dataclass(frozen=True, slots=True)
class Route:
    """Describe one route. Names in braces in its path are params of the operation.

    Its body, or the query of a GET, has the operation's other params ("plain"), without a filter where the path names
    one job or dead letter ("one"), or a job to submit ("job"). The answer of "text" is a text.
    """

    method: str
    path: str
    name: str  # of the operation
    summary: str
    shape: Shape = "plain"
    fixed: Mapping[str, Any] = field(default_factory=dict)  # params that the path implies
    status: int = 200

    @property
    def operation(self) -> Operation:
        return OPERATIONS[self.name]

    @property
    def in_path(self) -> list[str]:
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    @property
    def model(self) -> type[Payload]:
        """Return the model that has the fields of the body or the query."""
        if self.shape != "job":
            return self.operation.model
        from signalbox.operations.submit import JobParams

        return JobParams

    @property
    def fields(self) -> dict[str, FieldInfo]:
        """Return what the body or the query may have, by the names that callers use."""
        hidden = {*self.in_path, *self.fixed, *WHO} | (_FILTERS if self.shape == "one" else set())
        named = {found.alias or name: found for name, found in self.model.model_fields.items()}
        return {name: found for name, found in named.items() if name not in hidden}

    def params(self, in_path: Mapping[str, str], beside: Json) -> Json:
        """Return the operation's params. Refuse a field that the route does not take."""
        if unknown := next((name for name in beside if name not in self.fields), None):
            why = f"field '{unknown}' is not known{nearest(unknown, self.fields)}"
            raise PayloadRefused(why, [(unknown, why)])
        match self.shape:
            case "one":
                return {**beside, "ids": [in_path["id"]], **self.fixed}
            case "job":
                return {"jobs": [beside]}
            case _:
                return {**beside, **in_path, **self.fixed}

    def shown(self, answer: Json) -> tuple[int, Json]:
        """Return the status and the body of an answer; 200 where nothing was made after all."""
        status = 200 if "dry_run" in answer or answer.get("created") == 0 else self.status
        return status, answer["jobs"][0] if self.shape == "job" else answer


ROUTES = (
    Route("GET", "/v1/jobs", "list_jobs", "List jobs, newest first"),
    Route("POST", "/v1/jobs", "submit_jobs", "Submit a job", shape="job", status=201),
    Route("POST", "/v1/jobs/batch", "submit_jobs", "Submit many jobs, all or none", status=201),
    Route("POST", "/v1/jobs/cancel", "cancel_jobs", "Cancel the jobs that match"),
    Route("POST", "/v1/jobs/retry", "retry_jobs", "Retry now the jobs that match"),
    Route("POST", "/v1/jobs/pause", "pause", "Pause the jobs that match"),
    Route("POST", "/v1/jobs/resume", "resume", "Resume the jobs that match"),
    Route("GET", "/v1/jobs/{id}", "show_job", "Show a job with its attempts and dependencies"),
    Route("GET", "/v1/jobs/{id}/progress", "show_progress", "Show how far a job is"),
    Route("GET", "/v1/jobs/{id}/explanation", "explain_job", "Explain why a job does not run"),
    Route("POST", "/v1/jobs/{id}/cancel", "cancel_jobs", "Cancel a job", shape="one"),
    Route("POST", "/v1/jobs/{id}/retry", "retry_jobs", "Retry a job now", shape="one"),
    Route("POST", "/v1/jobs/{id}/pause", "pause", "Pause a job", shape="one"),
    Route("POST", "/v1/jobs/{id}/resume", "resume", "Resume a job", shape="one"),
    Route("POST", "/v1/signals/{key}", "send_signal", "Send a signal that jobs wait for"),
    Route("GET", "/v1/groups/{id}", "show_group", "Show the progress of a group"),
    Route("POST", "/v1/groups/{id}/seal", "seal_group", "Seal a group, which takes no more jobs"),
    Route("GET", "/v1/job-types", "list_job_types", "List job types"),
    Route("GET", "/v1/job-types/{name}", "show_job_type", "Show a job type with its payload's schema"),
    Route("GET", "/v1/dead-letters", "list_dead_letters", "List dead letters, newest failure first"),
    Route("GET", "/v1/dead-letters/kinds", "list_dead_letters", "List kinds of failure", fixed={"by_kind": True}),
    Route("POST", "/v1/dead-letters/triage", "triage_dead_letters", "Triage the dead letters that match"),
    Route("POST", "/v1/dead-letters/redrive", "redrive", "Redrive the dead letters that match"),
    Route("GET", "/v1/dead-letters/{id}", "show_dead_letter", "Show a dead letter"),
    Route("POST", "/v1/dead-letters/{id}/triage", "triage_dead_letters", "Triage a dead letter", shape="one"),
    Route("POST", "/v1/dead-letters/{id}/redrive", "redrive", "Redrive a dead letter", shape="one"),
    Route("GET", "/v1/tasks", "list_tasks", "List tasks"),
    Route("POST", "/v1/tasks/{task}/run", "run_task", "Run a task for a slot", status=202),
    Route("GET", "/v1/runs", "list_runs", "List runs of tasks, newest first"),
    Route("GET", "/v1/slots", "show_slots", "Show what became of each slot"),
    Route("GET", "/v1/slots/gap", "find_gap", "Find the newest slot that was missed or failed"),
    Route("GET", "/v1/backfills", "list_backfills", "List backfills, newest first"),
    Route("POST", "/v1/backfills", "create_backfill", "Create a backfill, or preview it", status=201),
    Route("GET", "/v1/backfills/{id}", "show_backfill", "Show a backfill"),
    Route("PATCH", "/v1/backfills/{id}", "change_backfill", "Change the rate of a backfill"),
    Route("POST", "/v1/backfills/{id}/pause", "pause_backfill", "Pause a backfill"),
    Route("POST", "/v1/backfills/{id}/resume", "resume_backfill", "Resume a backfill"),
    Route("POST", "/v1/backfills/{id}/cancel", "cancel_backfill", "Cancel a backfill"),
    Route("GET", "/v1/bulk-actions", "list_bulk_actions", "List bulk actions, newest first"),
    Route("GET", "/v1/bulk-actions/{id}", "show_bulk_action", "Show a bulk action"),
    Route("POST", "/v1/bulk-actions/{id}/cancel", "cancel_bulk_action", "Cancel a bulk action"),
    Route("GET", "/v1/schedules", "list_schedules", "List schedules of jobs"),
    Route("POST", "/v1/schedules", "create_schedule", "Create a schedule", status=201),
    Route("POST", "/v1/schedules/{id}/pause", "pause_schedule", "Pause a schedule"),
    Route("POST", "/v1/schedules/{id}/resume", "resume_schedule", "Resume a schedule"),
    Route("DELETE", "/v1/schedules/{id}", "delete_schedule", "Delete a schedule"),
    Route("GET", "/v1/caps", "list_controls", "List pauses, caps and rates"),
    Route("PUT", "/v1/caps/{kind}/{key}", "set_cap", "Set a cap or rate as a whole"),
    Route("DELETE", "/v1/caps/{kind}/{key}", "set_cap", "Remove a cap and rate", fixed=_NO_CAP),
    Route("POST", "/v1/caps/{kind}/{key}/pause", "pause", "Pause a type, lane, tenant or key"),
    Route("POST", "/v1/caps/{kind}/{key}/resume", "resume", "Resume a type, lane, tenant or key"),
    Route("GET", "/v1/stats", "show_statistics", "Show throughput, durations and failures"),
    Route("GET", "/v1/health", "show_health", "Show the health of the job plane"),
    Route("GET", "/metrics", "show_metrics", "Show figures as OpenMetrics text", shape="text"),
)  # fmt: skip


def find_route(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """Return the route and the params in its path; a path that is written out wins over one with names."""
    at_path = [(route, found) for route in ROUTES if (found := match_path(route.path, path)) is not None]
    if not at_path:
        raise RouteUnknown(f"nothing is served at {path[:200]}; GET /openapi.json lists what is")
    fewest = min(len(found) for _, found in at_path)
    at_path = [(route, found) for route, found in at_path if len(found) == fewest]
    for route, found in at_path:
        if route.method == method:
            return route, found
    allowed = sorted({route.method for route, _ in at_path})
    raise MethodRefused(f"{path[:200]} takes {' and '.join(allowed)}, not {method[:20]}", allowed)


def match_path(pattern: str, path: str) -> dict[str, str] | None:
    """Return what a path has in place of the pattern's names in braces, or None if it is another path."""
    own, given = pattern.strip("/").split("/"), [unquote(part) for part in path.strip("/").split("/")]
    pairs = list(zip(own, given, strict=False))
    if len(own) != len(given) or any(a != b and not (b and a.startswith("{")) for a, b in pairs):
        return None
    return {a[1:-1]: b for a, b in pairs if a.startswith("{")}
