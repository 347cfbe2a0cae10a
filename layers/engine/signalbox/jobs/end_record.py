"""What `end_attempts` reads of one attempt: its verdict, with the token that ends it and what was measured."""

from __future__ import annotations

from signalbox.jobs.job import ClaimedJob
from signalbox.jobs.verdict import Verdict, as_json


def end_record(job_id: str, token: str, verdict: Verdict, measured: str = "") -> str:
    """One element of the array; `measured` are members of it, each with a comma behind."""
    return f'{{"id":"{job_id}","token":"{token}",{measured}{as_json(verdict)[1:]}'


def record_of(job: ClaimedJob, verdict: Verdict, measured: str = "") -> str:
    """The same for a claimed job."""
    return end_record(job.id, job.token, verdict, measured)
