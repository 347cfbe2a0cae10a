-- The demo's data: a stack that has run since the evening of 4 January 2026, and lost its power from 01:38 until 02:06.
-- Made for the instant 2026-01-05T02:30:00Z, at which the demo fires every rule. Only rows that the engine itself could
-- have left.

-- Every slot from 20:30 on, except during the outage.
WITH tasks (name, status, reason, beat, first) AS (
    VALUES
        ('advance_backfills', 'succeeded', NULL, interval '1 minute', timestamptz '2026-01-04 20:30Z'),
        ('sweep_runs', 'succeeded', NULL, interval '5 minutes', timestamptz '2026-01-04 20:32Z'),
        ('reconcile_slots', 'succeeded', NULL, interval '15 minutes', timestamptz '2026-01-04 20:37Z'),
        ('poll_data', 'skipped', 'no upstream is configured', interval '15 minutes', timestamptz '2026-01-04 20:30Z')
)
INSERT INTO signalbox.job_history
    (job_type, slot, reference_time, trigger, status, reason, worker_id, started_at, finished_at)
SELECT name, slot, slot, 'schedule', status, reason, 'sample', slot + interval '1 second', slot + interval '1.02 seconds'
FROM tasks
CROSS JOIN LATERAL generate_series(first, timestamptz '2026-01-05 02:21Z', beat) AS slot
WHERE slot NOT BETWEEN '2026-01-05 01:38Z' AND '2026-01-05 02:05Z'
    AND (name, slot) <> ('reconcile_slots', timestamptz '2026-01-05 01:37Z')
ORDER BY slot, name;

-- The run that was at work when the power went: still `running`, its lease expired. sweep_runs ends it, and has its
-- slot run again.
INSERT INTO signalbox.job_history (job_type, slot, reference_time, trigger, status, worker_id, started_at)
VALUES
    ('reconcile_slots', '2026-01-05 01:37Z', '2026-01-05 01:37Z', 'schedule', 'running', 'sample/lost',
     '2026-01-05 01:37:01Z');
INSERT INTO signalbox.job_locks (id, worker_id, locked_at, expires_at)
VALUES
    ('reconcile_slots:2026-01-05T01:37:00+00:00', 'sample/lost', '2026-01-05 01:37:01Z', '2026-01-05 01:43:01Z');

-- prune_history did not run over the holidays, and has run since.
INSERT INTO signalbox.job_history
    (job_type, slot, reference_time, trigger, status, ran, reason, worker_id, started_at, finished_at)
SELECT 'prune_history', slot, slot, 'schedule', missed.status, missed.status <> 'missed', missed.reason, 'sample',
    slot + interval '1 second', slot + interval '1.1 seconds'
FROM generate_series(timestamptz '2025-12-28 02:30Z', timestamptz '2026-01-04 02:30Z', interval '1 day') AS slot
CROSS JOIN LATERAL (
    SELECT 'missed' AS status, 'no run came for this slot' AS reason
    WHERE slot BETWEEN '2025-12-31 02:30Z' AND '2026-01-02 02:30Z'
    UNION ALL
    SELECT 'succeeded', NULL
    LIMIT 1
) AS missed;

-- A person ordered a backfill of those nights. The first of the range had succeeded; advance_backfills starts the three
-- others.
WITH ordered AS (
    INSERT INTO signalbox.backfills
        (task, range_from, range_to, rate_per_minute, requested_by, reason, created_at, updated_at)
    VALUES
        ('prune_history', '2025-12-30 02:30Z', '2026-01-02 02:30Z', 60, 'sample', 'the rules were off over the holidays',
         '2026-01-05 02:29:40Z', '2026-01-05 02:29:40Z')
    RETURNING id
)
INSERT INTO signalbox.backfill_slots (backfill_id, slot, status, finished_at)
SELECT ordered.id, slot, CASE WHEN slot < '2025-12-31Z' THEN 'skipped' ELSE 'pending' END,
    CASE WHEN slot < '2025-12-31Z' THEN timestamptz '2026-01-05 02:29:40Z' END
FROM ordered
CROSS JOIN generate_series(timestamptz '2025-12-30 02:30Z', timestamptz '2026-01-02 02:30Z', interval '1 day') AS slot;

-- In October a person polled three days again by hand, hour by hour; those runs are now just older than ninety days.
-- Tonight's prune_history deletes them; the runs of the nights above are not old enough.
INSERT INTO signalbox.job_history
    (job_type, slot, reference_time, trigger, status, items, worker_id, started_at, finished_at)
SELECT 'poll_data', slot, slot, 'manual', 'succeeded', 12, 'sample', slot + interval '1 second', slot + interval '3 seconds'
FROM generate_series(timestamptz '2025-10-04 03:00Z', timestamptz '2025-10-07 02:00Z', interval '1 hour') AS slot;
