"""Run transactional jobs, each with one INSERT of the business, against what a program would do by hand instead.

By hand that is the bare INSERT in its own transaction, and one UPDATE that marks the job as done: two statements that
commit by themselves. Both in one transaction, so that neither is without the other, as with the worker, is shown, too.
SQS and the submit are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.job_types.insert_row import INSERT
from bench.ratio import Ratio, alternate, timed
from bench.stage.job_plant import JobPlant, events_of, job_plant, start_worker
from bench.stage.round_trips import count_round_trips
from signalbox.postgres.connection import Connection

JOBS, BATCH, ROUNDS = 500, 100, 7
DONE = "UPDATE by_hand SET status = 'completed', completed_at = now() WHERE id = %s"


def measure(dsn: str) -> list[Ratio]:
    with job_plant(dsn) as plant:
        plant.db.execute("CREATE TABLE business (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, number int)")
        plant.db.execute("CREATE TABLE by_hand (id int PRIMARY KEY, status text NOT NULL, completed_at timestamptz)")
        numbers = range(JOBS)
        plant.db.cursor().executemany("INSERT INTO by_hand VALUES (%s, 'queued')", [(n,) for n in numbers])
        trips = count_trips(plant)
        ours, apart, together = alternate(
            ROUNDS,
            _worker(plant),
            timed(lambda: _by_hand(plant.db, numbers)),
            timed(lambda: _by_hand_together(plant.db, numbers)),
        )
    print(f"transactional jobs: {JOBS / ours * 1000:,.0f} jobs/s, {trips} round trips a batch of {BATCH}")
    what = f"{JOBS} transactional jobs, in batches of {BATCH}"
    return [
        Ratio(
            what, "the bare INSERT in its own transaction and one UPDATE (2 round trips, 2 commits)", ours, apart, 1.5
        ),
        Ratio(what, "INSERT and UPDATE in one transaction (4 round trips, 1 commit)", ours, together),
    ]


def _worker(plant: JobPlant) -> Callable[[], float]:
    def once() -> float:
        ids = plant.submit("insert_row", JOBS)
        took = plant.work(events_of(ids, BATCH, "insert_row"))
        plant.require_completed(ids)
        return took

    return once


def count_trips(plant: JobPlant) -> int:
    """Count the round trips of one batch, with its claim and its finish."""
    with count_round_trips(plant.dsn) as trips:
        worker = start_worker(trips.dsn)
        worker.resources.database.connection()
        before = trips.number
        JobPlant(plant.dsn, worker, plant.db).work(events_of(plant.submit("insert_row", BATCH), BATCH))
        counted = trips.number - before
        worker.resources.database.close()
    return counted


def _by_hand(db: Connection, numbers: Sequence[int]) -> None:
    for number in numbers:
        db.execute(INSERT, (number,))
        db.execute(DONE, (number,))


def _by_hand_together(db: Connection, numbers: Sequence[int]) -> None:
    for number in numbers:
        with db.transaction():
            db.execute(INSERT, (number,))
            db.execute(DONE, (number,))
