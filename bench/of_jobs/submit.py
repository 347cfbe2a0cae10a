"""Submit 100,000 jobs at once, each checked, against a bare COPY of the same rows into the same table.

Submit 10,000 jobs of a fan-out, each with its tenant and its key, against one statement that stores as many. All have
the table's indexes, and a table without other rows, vacuumed before. The sending to SQS after the commit is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from bench.ratio import Ratio, alternate, timed
from bench.stage.job_plant import JobPlant, job_plant, start_worker
from bench.stage.round_trips import count_round_trips
from signalbox.submit.insert import SQL, submit
from signalbox.submit.new_job import NewJob

JOBS, TENANTS, ROUNDS = 100_000, 10_000, 5
STATEMENT = """
    INSERT INTO signalbox.jobs (
        job_type, lane, status, payload, tenant, idempotency_key, created_by, max_attempts, timeout_ms, send_at,
        queued_at
    )
    SELECT 'do_nothing', 'normal', 'queued', jsonb_build_object('number', n), 'tenant-' || n,
        'do_nothing:tenant-' || n || ':slot', 'bench', 5, 300000, now() + interval '1 min', now()
    FROM generate_series(1, %s) AS n
    ON CONFLICT (job_type, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
"""


def measure(dsn: str) -> list[Ratio]:
    with job_plant(dsn) as plant:
        jobs = [NewJob(job_type="do_nothing", payload={"number": number}) for number in range(JOBS)]
        rows = _rows(plant, jobs)
        trips = _round_trips(plant, jobs)
        ours, bare = alternate(
            ROUNDS,
            _in_empty_table(plant, lambda: _submit(plant, jobs)),
            _in_empty_table(plant, lambda: _copy(plant, rows)),
        )
        fan_out = [
            NewJob(
                job_type="do_nothing",
                payload={"number": number},
                tenant=f"tenant-{number}",
                idempotency_key=f"do_nothing:tenant-{number}:slot",
                created_by="bench",
            )
            for number in range(TENANTS)
        ]
        keyed, statement = alternate(
            ROUNDS,
            _in_empty_table(plant, lambda: _submit(plant, fan_out)),
            _in_empty_table(plant, lambda: _state(plant)),
        )
    rates = JOBS / ours * 1000, JOBS / bare * 1000
    print(f"bulk submit: {rates[0]:,.0f} jobs/s, {trips} round trips; bare COPY {rates[1]:,.0f} rows/s")
    return [
        Ratio(f"a submit of {JOBS:,} jobs", "a bare COPY of the same rows", ours, bare, 2.0),
        Ratio(f"a fan-out of {TENANTS:,} jobs with keys", "one statement that stores as many", keyed, statement, 2.0),
    ]


def _submit(plant: JobPlant, jobs: list[NewJob]) -> None:
    submit(plant.db, plant.engine.resources.job_types, jobs, datetime.now(UTC))


def _state(plant: JobPlant) -> None:
    plant.db.execute(STATEMENT, (TENANTS,))


def _copy(plant: JobPlant, rows: list[bytes]) -> None:
    with plant.db.cursor().copy(SQL["copy"]) as copy:
        for block in rows:
            copy.write(block)


def _rows(plant: JobPlant, jobs: list[NewJob]) -> list[bytes]:
    """Return what a submit has stored, as COPY outputs it, in the blocks that COPY takes best."""
    _submit(plant, jobs)
    columns = SQL["copy"].partition("(")[2].partition(")")[0]
    with plant.db.cursor().copy(f"COPY (SELECT {columns} FROM signalbox.jobs) TO STDOUT".encode()) as copy:
        text = b"".join(map(bytes, copy))
    lines = text.splitlines(keepends=True)
    return [b"".join(lines[start : start + 1000]) for start in range(0, len(lines), 1000)]


def _in_empty_table(plant: JobPlant, act: Callable[[], None]) -> Callable[[], float]:
    measured = timed(act)

    def once() -> float:
        plant.db.execute("TRUNCATE signalbox.jobs CASCADE")
        plant.db.execute("CHECKPOINT")
        return measured()

    return once


def _round_trips(plant: JobPlant, jobs: list[NewJob]) -> int:
    plant.db.execute("TRUNCATE signalbox.jobs CASCADE")
    with count_round_trips(plant.dsn) as trips:
        worker = start_worker(trips.dsn)
        connection = worker.resources.database.connection()
        before = trips.number
        submit(connection, worker.resources.job_types, jobs, datetime.now(UTC))
        counted = trips.number - before
        worker.resources.database.close()
    return counted
