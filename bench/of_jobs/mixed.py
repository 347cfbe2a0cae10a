"""Measure short jobs' waits while one in ten is long: 90 % of 5 ms and 10 % of 2 s, of two tenants, in one worker.

The floor is as many short ones alone. A job waits from when it was queued to the start of its attempt. The jobs of an
event are submitted just before the worker is handed it, the long ones first, and are fewer than its places: so short
ones never wait for other short ones. SQS is left out.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.job_types import AT_ONCE
from bench.ratio import Ratio, alternate
from bench.stage.job_plant import JobPlant, events_of, job_plant

EVENTS, SHORT, LONG, ROUNDS = 10, 180, 20, 3
SHORT_SECONDS, LONG_SECONDS = 0.005, 2.0
WAITED = """
    SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM x.started_at - j.queued_at))
    FROM signalbox.jobs AS j JOIN signalbox.job_executions AS x ON x.job_id = j.id
    WHERE j.id = ANY (%s::uuid[])
"""


def measure(dsn: str) -> list[Ratio]:
    with job_plant(dsn, AT_ONCE) as plant:
        mixed, alone = alternate(ROUNDS, _short_ones(plant, LONG), _short_ones(plant, 0))
    what = f"p95 of the wait of {EVENTS * SHORT:,} jobs of 5 ms, beside {EVENTS * LONG} of 2 s"
    return [Ratio(what, "the short ones alone", mixed, alone, 1.5)]


def _short_ones(plant: JobPlant, beside: int) -> Callable[[], float]:
    def once() -> float:
        ids: list[str] = []
        for _ in range(EVENTS):
            long = plant.submit("wait_awhile", beside, tenant="long", seconds=LONG_SECONDS)
            short = plant.submit("wait_awhile", SHORT, tenant="short", seconds=SHORT_SECONDS)
            plant.work(events_of(long + short, SHORT + LONG, "wait_awhile"))
            plant.require_completed(long + short)
            ids += short
        row = plant.db.execute(WAITED, (ids,)).fetchone()
        return float(row[0]) if row else 0.0

    return once
