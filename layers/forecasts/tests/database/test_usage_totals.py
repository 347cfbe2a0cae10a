"""Nothing counted is ever lost or counted twice, with traffic on other connections while usage is filed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread
from uuid import UUID

import psycopg
import pytest

from signalbox.testing.stage import Stage
from tests.support.forecast_rows import organization

DAY = timedelta(days=1)
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
DAYS, CALLERS, TRANSACTIONS = 12, 4, 150
Row = tuple[UUID, str]

# The API resets an organisation that calls after the end of its period so, one row at a time.
RESET_BY_THE_API = """
WITH ended AS (
    SELECT * FROM forecasts.rate_limits
    WHERE organization_id = %(id)s AND source = %(source)s AND period_end < %(now)s FOR UPDATE
), filed AS (
    INSERT INTO forecasts.usage_history AS known
    SELECT organization_id, (period_start AT TIME ZONE 'UTC')::date, source, api_calls_count, watchpoints_count, 0
    FROM ended
    ON CONFLICT (organization_id, date, source) DO UPDATE SET api_calls = known.api_calls + excluded.api_calls
)
UPDATE forecasts.rate_limits AS mine SET api_calls_count = 0, period_start = %(now)s, period_end = %(end)s
FROM ended WHERE mine.organization_id = ended.organization_id AND mine.source = ended.source
"""


@pytest.mark.parametrize("seed", range(4))
def test_what_comes_in_is_what_is_filed_and_what_is_still_counting(
    stage: Stage, db: psycopg.Connection, dsn: str, seed: int
) -> None:
    rows = [(organization(db), source) for source in ("api", "web") for _ in range(6)]
    for id_, source in rows:
        values = (id_, source, FIRST, FIRST + DAY)
        db.execute("INSERT INTO forecasts.rate_limits VALUES (%s, %s, 0, 2, %s, %s)", values)

    counted: list[Counter[Row]] = [Counter() for _ in range(CALLERS)]
    files = [0, 0]

    def call(number: int) -> None:
        chance = random.Random(f"{seed}/{number}")
        with psycopg.connect(dsn) as connection:
            for _ in range(TRANSACTIONS):
                _count(connection, chance, rows, counted[number])

    def file(number: int) -> None:
        other = stage.another()
        for day in range(1, DAYS):
            files[number] += other.run("aggregate_usage", FIRST + day * DAY + timedelta(hours=number))["items"]

    def reset() -> None:
        chance = random.Random(seed)
        with psycopg.connect(dsn, autocommit=True) as connection:
            for day in range(1, DAYS):
                now = FIRST + day * DAY + timedelta(minutes=30)
                id_, source = chance.choice(rows)
                connection.execute(RESET_BY_THE_API, {"id": id_, "source": source, "now": now, "end": now + DAY})

    _together([*(lambda n=n: call(n) for n in range(CALLERS)), lambda: file(0), lambda: file(1), reset])

    assert _found(db) == sum(counted, Counter())
    assert min(files) > 0


def _count(connection: psycopg.Connection, chance: random.Random, rows: list[Row], counted: Counter[Row]) -> None:
    """Count a few calls in one transaction, in the order of the rows as the API does; it may be rolled back."""
    chosen = sorted(chance.sample(rows, chance.choice([1, 1, 1, 2, 3])))
    for row in chosen:
        connection.execute(
            "UPDATE forecasts.rate_limits SET api_calls_count = api_calls_count + 1 "
            "WHERE organization_id = %s AND source = %s",
            row,
        )
    if chance.random() < 0.1:
        connection.rollback()
        return
    connection.commit()
    counted.update(chosen)


def _together(acts: list[Callable[[], None]]) -> None:
    gate, failures = Barrier(len(acts)), list[BaseException]()

    def perform(act: Callable[[], None]) -> None:
        gate.wait()
        try:
            act()
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=perform, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def _found(db: psycopg.Connection) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for query in (
        "SELECT organization_id, source, api_calls::int FROM forecasts.usage_history",
        "SELECT organization_id, source, api_calls_count::int FROM forecasts.rate_limits",
    ):
        for id_, source, calls in db.execute(query.encode()).fetchall():
            found[id_, source] += calls
    return +found
