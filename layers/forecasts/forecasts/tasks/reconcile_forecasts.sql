-- give_up_unconfirmed: give up one batch of the attempts that RunPod never confirmed
-- SKIP LOCKED, so that two reconcilings share them. There are never many: the partial index has only running rows.
UPDATE forecasts.forecast_runs
SET status = 'failed', failure_reason = 'Unconfirmed'
WHERE id IN (
    SELECT id FROM forecasts.forecast_runs
    WHERE status = 'running' AND external_id IS NULL
        AND CASE WHEN %(now)s > clock_timestamp() - %(replay)s
            THEN greatest(started_at, triggered_at, CASE WHEN started_at IS NULL THEN created_at END)
            ELSE coalesce(started_at, created_at)
        END < %(now)s - CASE model WHEN 'nowcast' THEN %(nowcast)s ELSE %(medium_range)s END
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
)
RETURNING id, model, run_timestamp;

-- list_overdue: list the next batch of runs that RunPod has had for longer than their model may take, oldest first
SELECT id, model, run_timestamp, external_id, retry_count, failure_reason IS NOT DISTINCT FROM %(timeout)s,
    input_references, started_at, triggered_at, since
FROM (
    SELECT *,
        CASE WHEN %(now)s > clock_timestamp() - %(replay)s
            THEN greatest(started_at, triggered_at, CASE WHEN started_at IS NULL THEN created_at END)
            ELSE coalesce(started_at, created_at)
        END AS since
    FROM forecasts.forecast_runs
    WHERE status = 'running' AND external_id IS NOT NULL
) AS run
WHERE since < %(now)s - CASE model WHEN 'nowcast' THEN %(nowcast)s ELSE %(medium_range)s END
    AND (since, id) > (%(after)s, %(after_id)s)
ORDER BY since, id
LIMIT %(batch)s;

-- complete: complete a run whose worker's own report was lost
UPDATE forecasts.forecast_runs
SET status = 'complete', completed_at = %(now)s, failure_reason = NULL
WHERE id = %(id)s AND status = 'running' AND external_id = %(external_id)s
    AND triggered_at IS NOT DISTINCT FROM %(triggered_at)s;

-- mark_hung: mark a running run that is about to be cancelled
UPDATE forecasts.forecast_runs
SET failure_reason = %(reason)s
WHERE id = %(id)s AND status = 'running' AND external_id = %(external_id)s
    AND triggered_at IS NOT DISTINCT FROM %(triggered_at)s;

-- fail: fail a run that is not tried again
UPDATE forecasts.forecast_runs
SET status = 'failed', failure_reason = %(reason)s
WHERE id = %(id)s AND status = 'running' AND external_id = %(external_id)s
    AND triggered_at IS NOT DISTINCT FROM %(triggered_at)s;

-- begin_retry: count the retry and begin a new attempt, before RunPod hears of it
UPDATE forecasts.forecast_runs
SET external_id = NULL, retry_count = retry_count + 1, started_at = %(now)s, triggered_at = clock_timestamp(),
    input_references = %(references)s, storage_prefix = coalesce(storage_prefix, %(storage_prefix)s)
WHERE id = %(id)s AND status = 'running' AND external_id = %(external_id)s
    AND failure_reason IS DISTINCT FROM %(timeout)s AND triggered_at IS NOT DISTINCT FROM %(triggered_at)s
RETURNING storage_prefix, triggered_at;

-- restore: undo a retry that RunPod has not taken
UPDATE forecasts.forecast_runs
SET external_id = %(external_id)s, retry_count = retry_count - 1,
    started_at = %(started_at)s, triggered_at = %(triggered_at)s
WHERE id = %(id)s AND status = 'running' AND external_id IS NULL AND triggered_at = %(attempt)s;
