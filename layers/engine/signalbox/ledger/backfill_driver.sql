-- list_open: return backfills that may start slots, or have slots whose invocation may be lost; oldest first
SELECT id FROM signalbox.backfills AS b
WHERE status = 'running' OR (status IN ('paused', 'cancelled') AND EXISTS (
    SELECT FROM signalbox.backfill_slots AS s WHERE s.backfill_id = b.id AND s.status = 'dispatched'
))
ORDER BY created_at;

-- stop: pause a backfill of which too many slots have failed
UPDATE signalbox.backfills AS b
SET status = 'paused', changed_by = 'signalbox', reason = 'failed slots reached ' || b.most_failures, updated_at = now()
WHERE b.id = %(id)s::uuid AND b.status = 'running' AND b.most_failures <= (
    SELECT count(*) FROM signalbox.backfill_slots AS s WHERE s.backfill_id = b.id AND s.status = 'failed'
);

-- take: take as many pending slots, in the backfill's order, as the rate of the last minute leaves room for
-- The backfill's row is locked, so that two drivers at once can't both see the same room; a driver that finds it locked
-- leaves the slots to the other.
WITH ours AS (
    SELECT id, rate_per_minute FROM signalbox.backfills
    WHERE id = %(id)s::uuid AND status = 'running'
    FOR UPDATE SKIP LOCKED
), room AS (
    SELECT ours.id, least(
        -- Five seconds short of a minute: the driver runs once a minute, and not to the millisecond.
        ours.rate_per_minute - count(*) FILTER (WHERE s.dispatched_at > clock_timestamp() - interval '55 seconds'),
        %(at_once)s::int - count(*) FILTER (WHERE s.status = 'dispatched')
    ) AS places
    FROM ours LEFT JOIN signalbox.backfill_slots AS s ON s.backfill_id = ours.id
    GROUP BY ours.id, ours.rate_per_minute
), next AS (
    SELECT s.backfill_id, s.slot
    FROM signalbox.backfill_slots AS s
    WHERE s.backfill_id = (SELECT id FROM room) AND s.status = 'pending'
    ORDER BY CASE WHEN %(newest_first)s THEN s.slot END DESC, s.slot
    LIMIT greatest(0, (SELECT places FROM room))
)
UPDATE signalbox.backfill_slots AS s
SET status = 'dispatched', dispatched_at = clock_timestamp(), attempts = s.attempts + 1
-- Another driver may have taken the same slots since our snapshot: look at the row as it is now.
FROM next WHERE s.backfill_id = next.backfill_id AND s.slot = next.slot AND s.status = 'pending'
RETURNING s.slot;

-- recover_lost: settle slots whose invocation was lost: as the ledger says, or pending again, or failed in the end
UPDATE signalbox.backfill_slots AS s
SET status = verdict.status, run_id = coalesce(verdict.run_id, s.run_id),
    finished_at = CASE WHEN verdict.status <> 'pending' THEN now() END
FROM (
    SELECT o.slot, done.id AS run_id,
        CASE WHEN done.id IS NOT NULL THEN 'succeeded'
            WHEN b.status = 'cancelled' THEN 'cancelled'
            WHEN o.attempts >= %(most_attempts)s THEN 'failed'
            ELSE 'pending' END AS status
    FROM signalbox.backfill_slots AS o
    JOIN signalbox.backfills AS b ON b.id = o.backfill_id
    LEFT JOIN LATERAL (
        SELECT id FROM signalbox.job_history AS h
        WHERE h.job_type = %(task)s AND h.slot = o.slot AND h.status = 'succeeded' AND NOT h.more
            AND h.started_at >= o.dispatched_at
        LIMIT 1
    ) AS done ON true
    WHERE o.backfill_id = %(id)s::uuid AND o.status = 'dispatched'
        AND o.dispatched_at < clock_timestamp() - %(lost_after)s
        -- A run at work, or one that followed it, is not lost however long it takes.
        AND NOT EXISTS (
            SELECT FROM signalbox.job_history AS h
            WHERE h.job_type = %(task)s AND h.slot = o.slot
                AND (h.status = 'running' OR h.started_at > clock_timestamp() - %(lost_after)s AND h.more)
        )
) AS verdict
WHERE s.backfill_id = %(id)s::uuid AND s.slot = verdict.slot AND s.status = 'dispatched';

-- complete: close a backfill whose last slot has ended
UPDATE signalbox.backfills AS b SET status = 'completed', finished_at = now(), updated_at = now()
WHERE b.id = %(id)s::uuid AND b.status = 'running'
    AND NOT EXISTS (
        SELECT FROM signalbox.backfill_slots AS s
        WHERE s.backfill_id = b.id AND s.status IN ('pending', 'dispatched')
    );
