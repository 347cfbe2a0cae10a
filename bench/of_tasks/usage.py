"""(h) File and reset 200,000 of 1,000,000 rate-limit rows, against the one statement that does the same.

A statement without the lock is shown, too: it is quicker, and loses the calls that come in while it runs.
"""

from __future__ import annotations

from datetime import UTC, datetime

from bench.ratio import Ratio
from bench.stage.task_race import ByHand, Race, run_race

NOW = datetime(2026, 3, 10, 1, tzinfo=UTC)
FILL = (
    "INSERT INTO forecasts.plan_limits VALUES ('pro', 1000, 1000)",
    "INSERT INTO forecasts.organizations (name, plan) SELECT 'org-' || n, 'pro' FROM generate_series(1, 500000) AS n",
    "ALTER TABLE forecasts.rate_limits SET (autovacuum_enabled = false)",
    # One in five organisations has not called since midnight.
    """
    INSERT INTO forecasts.rate_limits
    SELECT id, source, 5, 3, day, day + interval '1 day'
    FROM (SELECT id, row_number() OVER () AS n FROM forecasts.organizations) AS organization,
        unnest('{api,web}'::text[]) AS source,
        LATERAL (SELECT timestamptz '2026-03-10 00:00Z' - (n % 5 = 0)::int * interval '1 day' AS day) AS period
    """,
)
FILE = """
INSERT INTO forecasts.usage_history AS known
SELECT organization_id, (period_start AT TIME ZONE 'UTC')::date, source, api_calls_count, watchpoints_count, 0
FROM {ended}
ON CONFLICT (organization_id, date, source) DO UPDATE
SET api_calls = known.api_calls + excluded.api_calls, watchpoints = greatest(known.watchpoints, excluded.watchpoints)
"""
RESET = """
UPDATE forecasts.rate_limits AS mine SET api_calls_count = 0, watchpoints_count = 0,
    period_start = '2026-03-10 00:00Z', period_end = '2026-03-11 00:00Z'
"""
LOCKED = (
    "WITH ended AS (SELECT * FROM forecasts.rate_limits WHERE period_end < %(now)s FOR UPDATE), "
    f"filed AS ({FILE.format(ended='ended')}) {RESET} FROM ended "
    "WHERE mine.organization_id = ended.organization_id AND mine.source = ended.source"
)
UNLOCKED = (
    f"WITH filed AS ({FILE.format(ended='forecasts.rate_limits WHERE period_end < %(now)s')}) "
    f"{RESET} WHERE period_end < %(now)s"
)


def measure(dsn: str) -> list[Ratio]:
    label = "(h) filing and resetting 200,000 of 1,000,000 rate-limit rows"
    by_hand = [
        ByHand("one INSERT and UPDATE by hand", LOCKED, 1.5),
        ByHand("the same without a lock, which loses calls", UNLOCKED, None),
    ]
    return run_race(dsn, Race(label, "aggregate_usage", NOW, 200_000, FILL, by_hand))
