"""Job types for the benchmarks: what is left of a job's time when the job itself takes none."""

from __future__ import annotations

from signalbox.jobs.job_type import JobType

BENCH_JOB_TYPES = (
    JobType("do_nothing", "completes at once", "bench.job_types.do_nothing"),
    JobType("insert_row", "writes one row", "bench.job_types.insert_row", transactional=True),
)
