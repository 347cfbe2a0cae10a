"""Know the slot for which a company's job was submitted."""

from __future__ import annotations

from datetime import datetime

from signalbox.packs.job_payload import JobPayload
from signalbox.packs.outcome import Completed
from signalbox.worker.job_context import JobContext


class GreetCompany(JobPayload):
    """Name the company."""

    company: str
    slot: datetime


def greet_company(context: JobContext) -> Completed:
    return Completed({"hour": context.payload.slot.hour})
