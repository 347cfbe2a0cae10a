"""Decide which dead letters can be redriven, from what was read of them, without any I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Candidate:
    """Describe a dead letter with the job that it concerns, if there is one."""

    id: str
    source: Literal["job", "message", "invocation"]
    status: str
    job_type: str
    error: str | None
    job_id: str | None
    job_status: str | None  # None: there is no such job
    job_group: str | None
    blockers: Sequence[tuple[str, str]] | None  # (id, status) of jobs that it depends on and that ended without success
    payload: Any  # of an invocation
    function: str | None

    @property
    def shown(self) -> dict[str, Any]:
        return {"id": self.id, "source": self.source, "job_type": self.job_type, "job_id": self.job_id,
                "status": self.status, "error": self.error}  # fmt: skip


def refusals(candidates: Iterable[Candidate], stack: str) -> dict[str, str]:
    """Return why dead letters can't be redriven, by id. A job may wait for another one of the same request."""
    known = list(candidates)
    refused = {one.id: why for one in known if (why := _refusal(one, stack)) is not None}
    while True:
        going = {one.job_id for one in known if one.source == "job" and one.id not in refused}
        stuck = {one.id: why for one in known if one.id not in refused and (why := _blocked(one, going)) is not None}
        if not stuck:
            return refused
        refused |= stuck


def _refusal(one: Candidate, stack: str) -> str | None:
    if one.status == "redriven":
        return "it has been redriven already" + (f", and its job is {one.job_status}" if one.job_status else "")
    if one.source == "invocation":
        ours = one.function is not None and one.function.startswith(f"{stack}-")
        return None if ours else f"function {one.function or '(unknown)'} does not belong to stack {stack}"
    if one.job_id is None:
        return "the message can't be decoded: there is nothing to send again"
    if one.job_status is None:
        return f"there is no job {one.job_id} any more: submit it again, with the payload of the dead letter"
    return _not_in_state(one)


def _not_in_state(one: Candidate) -> str | None:
    if one.source == "job" and one.job_status != "failed":
        return f"job {one.job_id} is {one.job_status}; only a failed job can be redriven"
    if one.source == "message" and one.job_status not in ("pending", "queued"):
        return f"job {one.job_id} is {one.job_status}: it needs no message"
    return None


def _blocked(one: Candidate, going: set[str | None]) -> str | None:
    for parent, status in one.blockers or ():
        if parent not in going:
            advice = "redrive that one as well" if status == "failed" else "submit it again without that dependency"
            return f"job {one.job_id} depends on {parent}, which is {status}: {advice}"
    return None
