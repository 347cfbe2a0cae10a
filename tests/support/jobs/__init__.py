"""Register job types for tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from signalbox.packs.job_type import JobType, Lane
from signalbox.packs.registries import JobTypeRegistry
from signalbox.packs.retry_policy import RetryPolicy
from signalbox.submit.new_job import NewJob

TEST_JOB_TYPES = (
    JobType("do_nothing", "completes at once", "tests.support.jobs.do_nothing"),
    JobType("note_job", "writes a row", "tests.support.jobs.note_job", transactional=True, subject="subject"),
    JobType(
        "obey",
        "does what its payload says",
        "tests.support.jobs.obey",
        version=2,
        timeout=timedelta(seconds=2),
        retry=RetryPolicy(max_attempts=3, base=timedelta(seconds=4), jitter="none"),
        lanes=frozenset({Lane.HIGH, Lane.NORMAL, Lane.LOW}),
    ),
)
REGISTRY = JobTypeRegistry(TEST_JOB_TYPES)


def obeying(word: str, seconds: int = 0, **fields: Any) -> NewJob:
    """Return a job that does as the word says."""
    return NewJob(job_type="obey", payload={"word": word, "seconds": seconds}, **fields)
