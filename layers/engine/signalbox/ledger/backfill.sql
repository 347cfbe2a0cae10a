-- list_states: return what the ledger says of these slots, for those that it knows
SELECT slot, CASE
    WHEN bool_or(status = 'succeeded' AND NOT more) THEN 'succeeded'
    WHEN bool_or(status = 'running') THEN 'running'
    WHEN bool_or(status = 'failed') THEN 'failed'
    ELSE 'missing' END
FROM signalbox.job_history
WHERE job_type = %(task)s AND slot = ANY (%(slots)s)
GROUP BY slot;

-- create: store the backfill and all its slots; slots that have succeeded before are skipped unless forced
WITH made AS (
    INSERT INTO signalbox.backfills
        (task, range_from, range_to, rate_per_minute, force, params, requested_by, reason, newest_first, most_failures)
    VALUES (%(task)s, %(range_from)s, %(range_to)s, %(rate)s, %(force)s, %(params)s, %(requested_by)s, %(reason)s,
        %(newest_first)s, %(most_failures)s)
    RETURNING id
), planned AS (
    INSERT INTO signalbox.backfill_slots (backfill_id, slot, status, finished_at)
    SELECT made.id, wanted, verdict.status, CASE WHEN verdict.status = 'skipped' THEN now() END
    FROM made
    CROSS JOIN unnest(%(slots)s::timestamptz[]) AS wanted
    CROSS JOIN LATERAL (
        SELECT CASE WHEN NOT %(force)s AND EXISTS (
            SELECT FROM signalbox.job_history
            WHERE job_type = %(task)s AND slot = wanted AND status = 'succeeded' AND NOT more
        ) THEN 'skipped' ELSE 'pending' END AS status
    ) AS verdict
)
SELECT id FROM made;

-- find: return one backfill with its slots counted
SELECT id::text, task, range_from, range_to, rate_per_minute, force, params, status, reason, requested_by, changed_by,
    created_at, updated_at, finished_at, slots, newest_first, most_failures
FROM signalbox.backfill_progress WHERE id = %(id)s::uuid;

-- list_newest: return backfills, newest first
SELECT id::text, task, range_from, range_to, rate_per_minute, force, params, status, reason, requested_by, changed_by,
    created_at, updated_at, finished_at, slots, newest_first, most_failures
FROM signalbox.backfill_progress
WHERE id IN ( -- so that the slots of these alone are counted
    SELECT id FROM signalbox.backfills WHERE status = coalesce(%(status)s, status) ORDER BY created_at DESC LIMIT %(limit)s
)
ORDER BY created_at DESC;

-- pause: start no further slot
UPDATE signalbox.backfills
SET status = 'paused', reason = coalesce(%(reason)s, reason), changed_by = %(by)s, updated_at = now()
WHERE id = %(id)s::uuid AND status = ANY (%(sources)s)
RETURNING id;

-- change: set the rate of a backfill that has not ended
UPDATE signalbox.backfills
SET rate_per_minute = %(rate)s, reason = coalesce(%(reason)s, reason), changed_by = %(by)s, updated_at = now()
WHERE id = %(id)s::uuid AND status IN ('running', 'paused')
RETURNING id;

-- resume: continue, and try the failed slots again
WITH resumed AS (
    UPDATE signalbox.backfills
    SET status = 'running', reason = coalesce(%(reason)s, reason), changed_by = %(by)s, updated_at = now(),
        finished_at = NULL
    WHERE id = %(id)s::uuid AND status = ANY (%(sources)s)
    RETURNING id
), again AS (
    UPDATE signalbox.backfill_slots AS s SET status = 'pending', attempts = 0, finished_at = NULL
    FROM resumed WHERE s.backfill_id = resumed.id AND s.status = 'failed'
)
SELECT id FROM resumed;

-- cancel: cancel the slots that have not started
WITH cancelled AS (
    UPDATE signalbox.backfills
    SET status = 'cancelled', reason = coalesce(%(reason)s, reason), changed_by = %(by)s, updated_at = now(),
        finished_at = now()
    WHERE id = %(id)s::uuid AND status = ANY (%(sources)s)
    RETURNING id
), dropped AS (
    UPDATE signalbox.backfill_slots AS s SET status = 'cancelled', finished_at = now()
    FROM cancelled WHERE s.backfill_id = cancelled.id AND s.status = 'pending'
)
SELECT id FROM cancelled;

-- put_back: make slots pending that were taken and could not be handed over
UPDATE signalbox.backfill_slots
SET status = 'pending', dispatched_at = NULL, attempts = attempts - 1
WHERE backfill_id = %(id)s::uuid AND slot = ANY (%(slots)s) AND status = 'dispatched';

-- record_slot: record a slot's result; a retry may still turn a failure into a success, never the other way
UPDATE signalbox.backfill_slots
SET status = %(status)s, run_id = %(run_id)s, finished_at = now()
WHERE backfill_id = %(id)s::uuid AND slot = %(slot)s AND status IN ('pending', 'dispatched', 'failed');

-- record_if_done: record that another run has done the slot, before this backfill was requested or since
UPDATE signalbox.backfill_slots AS s
SET status = CASE WHEN done.started_at >= b.created_at THEN 'succeeded' ELSE 'skipped' END, run_id = done.id,
    finished_at = now()
FROM signalbox.backfills AS b, signalbox.job_history AS done
WHERE s.backfill_id = %(id)s::uuid AND s.slot = %(slot)s AND s.status IN ('pending', 'dispatched') AND b.id = s.backfill_id
    AND done.job_type = %(task)s AND done.slot = s.slot AND done.status = 'succeeded' AND NOT done.more
    AND (NOT b.force OR done.started_at >= b.created_at);
