"""Offer what an application and a pack import: background work on AWS Lambda and Postgres.

Each name is imported when it is first asked for, so that `import signalbox` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signalbox.client.async_client import AsyncClient
    from signalbox.client.client import Client
    from signalbox.client.connections import DriverRefused
    from signalbox.client.http_client import HttpClient
    from signalbox.errors import ApiProblem, JobRefused, JobTypeUnknown, Refused, SignalboxError, Unavailable
    from signalbox.jobs.dependency import Dependency
    from signalbox.ledger.context import Context, Done, Skipped
    from signalbox.packs.job_payload import JobPayload
    from signalbox.packs.job_type import JobType, Lane, TypeCap
    from signalbox.packs.outcome import (
        Cancelled,
        Completed,
        JobCancelled,
        JobFailed,
        JobTimedOut,
        More,
        Permanent,
        RateLimited,
        Snooze,
        Transient,
    )
    from signalbox.packs.pack import Pack
    from signalbox.packs.retry_policy import RetryPolicy
    from signalbox.packs.task import CatchUp, Overlap, Task
    from signalbox.submit.new_job import NewJob, Submitted
    from signalbox.worker.job_context import AsyncJobContext, JobContext

# Where each name is. The type checker reads the imports above instead; a test holds both against each other.
_MODULES = {
    "AsyncClient": "client.async_client",
    "Client": "client.client",
    "DriverRefused": "client.connections",
    "HttpClient": "client.http_client",
    "ApiProblem": "errors",
    "JobRefused": "errors",
    "JobTypeUnknown": "errors",
    "Refused": "errors",
    "SignalboxError": "errors",
    "Unavailable": "errors",
    "Dependency": "jobs.dependency",
    "Context": "ledger.context",
    "Done": "ledger.context",
    "Skipped": "ledger.context",
    "JobPayload": "packs.job_payload",
    "JobType": "packs.job_type",
    "Lane": "packs.job_type",
    "TypeCap": "packs.job_type",
    "Cancelled": "packs.outcome",
    "Completed": "packs.outcome",
    "JobCancelled": "packs.outcome",
    "JobFailed": "packs.outcome",
    "JobTimedOut": "packs.outcome",
    "More": "packs.outcome",
    "Permanent": "packs.outcome",
    "RateLimited": "packs.outcome",
    "Snooze": "packs.outcome",
    "Transient": "packs.outcome",
    "Pack": "packs.pack",
    "RetryPolicy": "packs.retry_policy",
    "CatchUp": "packs.task",
    "Overlap": "packs.task",
    "Task": "packs.task",
    "NewJob": "submit.new_job",
    "Submitted": "submit.new_job",
    "AsyncJobContext": "worker.job_context",
    "JobContext": "worker.job_context",
}

__all__ = [
    "ApiProblem",
    "AsyncClient",
    "AsyncJobContext",
    "Cancelled",
    "CatchUp",
    "Client",
    "Completed",
    "Context",
    "Dependency",
    "Done",
    "DriverRefused",
    "HttpClient",
    "JobCancelled",
    "JobContext",
    "JobFailed",
    "JobPayload",
    "JobRefused",
    "JobTimedOut",
    "JobType",
    "JobTypeUnknown",
    "Lane",
    "More",
    "NewJob",
    "Overlap",
    "Pack",
    "Permanent",
    "RateLimited",
    "Refused",
    "RetryPolicy",
    "SignalboxError",
    "Skipped",
    "Snooze",
    "Submitted",
    "Task",
    "Transient",
    "TypeCap",
    "Unavailable",
]


if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module 'signalbox' has no attribute '{name}'")
        return getattr(import_module(f"signalbox.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
