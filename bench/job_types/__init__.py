"""Define job types for the benchmarks: jobs that take no time, or only wait, so that the rest of a job's time shows."""

from __future__ import annotations

from datetime import timedelta

from signalbox.packs.job_type import JobType

AT_ONCE = 400  # waiting jobs, in one worker
OF_A_HOST = 4  # jobs at once in a host of the cells
_SHORT = timedelta(seconds=5)  # the crowd's invocations last 20 s

BENCH_JOB_TYPES = (
    JobType("do_nothing", "completes at once", "bench.job_types.do_nothing"),
    JobType("insert_row", "writes one row", "bench.job_types.insert_row", transactional=True),
    JobType("wait_awhile", "sleeps", "bench.job_types.wait_awhile", side_by_side=AT_ONCE),
    JobType("wait_on_loop", "sleeps on an event loop", "bench.job_types.wait_awhile", side_by_side=AT_ONCE),
    JobType("wait_and_note", "sleeps", "bench.job_types.wait_awhile", side_by_side=OF_A_HOST, timeout=_SHORT),
)
