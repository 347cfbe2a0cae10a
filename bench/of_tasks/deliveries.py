"""(i) Requeue 100,000 of 1,000,000 deliveries, against the one statement that marks them and reads their messages.

Sending the messages is left out. They are read, made and counted. A statement that only marks and reads nothing is
shown, too, to tell the messages' cost.
"""

from __future__ import annotations

from datetime import UTC, datetime

from bench.ratio import Ratio
from bench.stage.task_race import ByHand, Race, run_race

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
# Deliveries that were deferred in one night lie together.
FILL = (
    "INSERT INTO forecasts.plan_limits VALUES ('pro', 1000, 1000)",
    """
    INSERT INTO forecasts.organizations (name, plan, timezone, notification_preferences)
    SELECT 'org-' || n, 'pro', 'Europe/Berlin', '{"quiet_hours": {"start": "22:00", "end": "07:00"}}'
    FROM generate_series(1, 1000) AS n
    """,
    "ALTER TABLE forecasts.notification_deliveries SET (autovacuum_enabled = false)",
    """
    INSERT INTO forecasts.notifications (organization_id, payload)
    SELECT owners.ids[1 + n % 1000], '{"text": "Rain from three o''clock", "place": "a place", "millimetres": 12.5}'
    FROM generate_series(1, 1000000) AS n, (SELECT array_agg(id) AS ids FROM forecasts.organizations) AS owners
    """,
    """
    INSERT INTO forecasts.notification_deliveries (notification_id, channel, status, next_retry_at)
    SELECT id, 'email', CASE WHEN n <= 100000 THEN 'deferred' ELSE 'sent' END,
        CASE WHEN n <= 100000 THEN timestamptz '2026-03-10 06:00Z' + n % 600 * interval '1 s' END
    FROM (SELECT id, row_number() OVER () AS n FROM forecasts.notifications) AS told
    """,
)
MARK_AND_READ = """
UPDATE forecasts.notification_deliveries AS delivery SET status = 'pending'
FROM forecasts.notifications AS notification, forecasts.organizations AS organization
WHERE delivery.status = 'deferred' AND delivery.next_retry_at <= %(now)s
    AND notification.id = delivery.notification_id AND organization.id = notification.organization_id
RETURNING delivery.id, notification.id, notification.payload, organization.timezone,
    organization.notification_preferences -> 'quiet_hours'
"""
MARK = """
UPDATE forecasts.notification_deliveries SET status = 'pending' WHERE status = 'deferred' AND next_retry_at <= %(now)s
"""


def measure(dsn: str) -> list[Ratio]:
    label = "(i) requeueing 100,000 of 1,000,000 deliveries, sending aside"
    by_hand = [
        ByHand("one UPDATE by hand that returns what the messages hold", MARK_AND_READ, 1.5),
        ByHand("one UPDATE by hand that returns nothing", MARK, None),
    ]
    return run_race(dsn, Race(label, "requeue_deferred", NOW, 100_000, FILL, by_hand))
