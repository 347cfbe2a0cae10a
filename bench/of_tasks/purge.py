"""(f) Purge 500,000 expired idempotency keys out of 1,000,000, against the one DELETE that does the same."""

from __future__ import annotations

from datetime import UTC, datetime

from bench.ratio import Ratio
from bench.stage.task_race import ByHand, Race, run_race

NOW = datetime(2026, 3, 10, 3, tzinfo=UTC)
# Keys expire a day after they are made, so they lie in the table in about the order in which they expire.
FILL = (
    "ALTER TABLE forecasts.idempotency_keys SET (autovacuum_enabled = false)",
    """
    INSERT INTO forecasts.idempotency_keys (key, response, created_at, expires_at)
    SELECT gen_random_uuid(), jsonb_build_object('status', 200, 'id', gen_random_uuid()), at - interval '1 day', at
    FROM (
        SELECT timestamptz '2026-03-10 03:00Z' + (n - 500000.5) * interval '0.1 s' AS at
        FROM generate_series(1, 1000000) AS n ORDER BY n + random() * 1000
    ) AS times
    """,
)
BY_HAND = "DELETE FROM forecasts.idempotency_keys WHERE expires_at < %(now)s"


def measure(dsn: str) -> list[Ratio]:
    label = "(f) purging 500,000 of 1,000,000 idempotency keys"
    by_hand = [ByHand("one DELETE by hand", BY_HAND, 1.5)]
    return run_race(dsn, Race(label, "cleanup_idempotency_keys", NOW, 500_000, FILL, by_hand))
