"""Job types that tests register."""

from __future__ import annotations

from datetime import timedelta

from signalbox.packs.job_type import JobType, Lane
from signalbox.packs.retry_policy import RetryPolicy

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
