-- serves: 1
-- Backfills that begin with the newest slot, and that pause by themselves after some failures.

ALTER TABLE signalbox.backfills
    ADD COLUMN newest_first boolean NOT NULL DEFAULT false,
    ADD COLUMN most_failures integer CONSTRAINT backfill_failures_positive CHECK (most_failures > 0);
COMMENT ON COLUMN signalbox.backfills.most_failures IS 'The backfill pauses once this many of its slots have failed; null: never.';

CREATE OR REPLACE VIEW signalbox.backfill_progress AS
SELECT b.id, b.task, b.range_from, b.range_to, b.rate_per_minute, b.force, b.params, b.status, b.reason,
    b.requested_by, b.changed_by, b.created_at, b.updated_at, b.finished_at, counted.slots, b.newest_first, b.most_failures
FROM signalbox.backfills AS b
CROSS JOIN LATERAL (
    SELECT jsonb_build_object(
        'total', count(*),
        'pending', count(*) FILTER (WHERE s.status = 'pending'),
        'dispatched', count(*) FILTER (WHERE s.status = 'dispatched'),
        'succeeded', count(*) FILTER (WHERE s.status = 'succeeded'),
        'failed', count(*) FILTER (WHERE s.status = 'failed'),
        'skipped', count(*) FILTER (WHERE s.status = 'skipped'),
        'cancelled', count(*) FILTER (WHERE s.status = 'cancelled')
    ) AS slots
    FROM signalbox.backfill_slots AS s WHERE s.backfill_id = b.id
) AS counted;
