"""(g) Archive 100,000 of 1,000,000 watchpoints, with their audit records, against the one statement that does both.

Sending the summaries' messages is left out. They are made and counted.
"""

from __future__ import annotations

from datetime import UTC, datetime

from bench.ratio import Ratio
from bench.stage.task_race import ByHand, Race, run_race

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
# Watchpoints that were made at one time lie together, and end at about one time.
FILL = (
    "INSERT INTO forecasts.plan_limits VALUES ('pro', 1000, 1000)",
    "INSERT INTO forecasts.organizations (name, plan) SELECT 'org-' || n, 'pro' FROM generate_series(1, 1000) AS n",
    "ALTER TABLE forecasts.watchpoints SET (autovacuum_enabled = false)",
    """
    INSERT INTO forecasts.watchpoints (organization_id, name, tile_id, time_window_end)
    SELECT owners.ids[1 + n % 1000], 'a place', 'tile-' || n % 5000,
        timestamptz '2026-03-10 10:00Z' + (n - 100000) * interval '1 s' + interval '1 h' * (n > 100000)::int
    FROM generate_series(1, 1000000) AS n, (SELECT array_agg(id) AS ids FROM forecasts.organizations) AS owners
    """,
)
ONE_STATEMENT = """
WITH archived AS (
    UPDATE forecasts.watchpoints SET status = 'archived', archived_at = %(now)s, archived_reason = 'event_passed'
    WHERE status = 'active' AND time_window_end IS NOT NULL
        AND time_window_end < %(now)s::timestamptz - interval '1 hour'
    RETURNING id, organization_id
)
INSERT INTO forecasts.audit_logs (organization_id, actor, action, entity_type, entity_id, detail, created_at)
SELECT organization_id, 'signalbox', 'watchpoint.archived', 'watchpoint', id, '{"reason": "event_passed"}', %(now)s
FROM archived
"""


def measure(dsn: str) -> list[Ratio]:
    label = "(g) archiving 100,000 of 1,000,000 watchpoints, messages aside"
    by_hand = [ByHand("one UPDATE and INSERT by hand", ONE_STATEMENT, 1.5)]
    return run_race(dsn, Race(label, "archive_watchpoints", NOW, 100_000, FILL, by_hand))
