-- claim: takes the slot's lease and opens its row, or leaves a row that says why not
-- Several statements in one message run in one transaction, and each has a snapshot of its own: whoever had to wait
-- for the lease at the first statement sees at the third what the holder recorded before giving it back.
INSERT INTO signalbox.job_locks AS held (id, worker_id, locked_at, expires_at)
SELECT wanted, %(worker_id)s, clock_timestamp(), clock_timestamp() + %(lease)s
FROM unnest(%(locks)s::text[]) AS wanted
ON CONFLICT (id) DO UPDATE
SET worker_id = excluded.worker_id, locked_at = excluded.locked_at, expires_at = excluded.expires_at
WHERE held.expires_at <= clock_timestamp();
-- Whoever held the lease before and let it run out did not finish.
UPDATE signalbox.job_history AS lost
SET status = 'failed', finished_at = greatest(clock_timestamp(), lost.started_at),
    error = jsonb_build_object('type', 'WorkerLost', 'message', 'the worker stopped without a word and its lease ran out')
WHERE lost.job_type = %(job_type)s AND lost.slot = %(slot)s AND lost.status = 'running'
    AND EXISTS (
        SELECT FROM signalbox.job_locks WHERE id = %(lock)s AND worker_id = %(worker_id)s
    );
INSERT INTO signalbox.job_history
    (job_type, slot, reference_time, trigger, step, request, worker_id, started_at, status, reason, finished_at)
SELECT %(job_type)s, %(slot)s, %(reference_time)s, %(trigger)s, %(step)s, %(request)s, %(worker_id)s, seen.at,
    verdict.status, verdict.reason, CASE WHEN verdict.status <> 'running' THEN seen.at END
FROM (
    SELECT clock_timestamp() AS at,
        (SELECT array_agg(id) FROM signalbox.job_locks
         WHERE id = ANY (%(locks)s) AND worker_id = %(worker_id)s) AS mine,
        (SELECT id FROM signalbox.job_history
         WHERE job_type = %(job_type)s AND slot = %(slot)s AND status = 'succeeded' AND NOT more
         LIMIT 1) AS done
) AS seen
CROSS JOIN LATERAL (
    SELECT 'skipped' AS status, format('the slot has already succeeded, in run %%s', seen.done) AS reason
    WHERE seen.done IS NOT NULL AND NOT %(force)s
    UNION ALL
    SELECT 'skipped', 'the slot is being run by another worker'
    WHERE %(lock)s <> ALL (coalesce(seen.mine, '{}'))
    UNION ALL
    SELECT 'missed', 'another slot of the task is being run, and its runs may not overlap'
    WHERE cardinality(seen.mine) < cardinality(%(locks)s::text[])
    UNION ALL
    SELECT 'running', NULL
    LIMIT 1
) AS verdict
ON CONFLICT (job_type, slot) WHERE status = 'missed' DO UPDATE SET reason = excluded.reason
RETURNING id, status, reason;
DELETE FROM signalbox.job_locks
WHERE id = ANY (%(locks)s) AND worker_id = %(worker_id)s
    AND NOT EXISTS (
        SELECT FROM signalbox.job_history
        WHERE job_type = %(job_type)s AND slot = %(slot)s AND status = 'running' AND worker_id = %(worker_id)s
    );

-- record: ends a run and gives its lease back, unless it was given up in the meantime
WITH ended AS (
    UPDATE signalbox.job_history
    SET status = %(status)s, items = %(items)s, more = %(more)s, reason = %(reason)s, error = %(error)s,
        finished_at = greatest(clock_timestamp(), started_at)
    WHERE id = %(run_id)s AND status = 'running' AND worker_id = %(worker_id)s
    RETURNING duration_ms
), returned AS (
    DELETE FROM signalbox.job_locks
    WHERE id = ANY (%(locks)s) AND worker_id = %(worker_id)s AND EXISTS (SELECT FROM ended)
)
SELECT duration_ms FROM ended;

-- record_refusal: a failed row for a request that can't be run
INSERT INTO signalbox.job_history
    (job_type, slot, reference_time, trigger, worker_id, started_at, finished_at, status, error)
SELECT %(job_type)s, %(slot)s, %(reference_time)s, %(trigger)s, %(worker_id)s, now(), now(), 'failed', %(error)s
WHERE NOT EXISTS (
    SELECT FROM signalbox.job_history
    WHERE job_type = %(job_type)s AND slot = %(slot)s AND status = 'failed' AND starts_with(worker_id, %(request)s)
)
RETURNING id;
