-- give_up_unconfirmed: one batch of the attempts that nobody knows RunPod to have taken
-- SKIP LOCKED, so that two reconcilings share them. There are never many at work: the partial index holds only these.
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

-- list_overdue: the next batch of runs that RunPod has had for longer than their model may take, oldest first
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

-- complete: a run whose worker's own word was lost
UPDATE forecasts.forecast_runs
SET status = 'complete', completed_at = %(now)s, failure_reason = NULL
WHERE id = %(id)s AND status = 'running' AND external_id = %(external_id)s
    AND triggered_at IS NOT DISTINCT FROM %(triggered_at)s;

-- mark_hung: says of a run at work that it is about to be cancelled
UPDATE forecasts.forecast_runs
SET failure_reason = %(reason)s
WHERE id = %(id)s AND status = 'running' AND external_id = %(external_id)s
    AND triggered_at IS NOT DISTINCT FROM %(triggered_at)s;

-- fail: a run that is not tried again
UPDATE forecasts.forecast_runs
SET status = 'failed', failure_reason = %(reason)s
WHERE id = %(id)s AND status = 'running' AND external_id = %(external_id)s
    AND triggered_at IS NOT DISTINCT FROM %(triggered_at)s;

-- begin_retry: counts the retry and names a new attempt, of which RunPod has not heard yet
UPDATE forecasts.forecast_runs
SET external_id = NULL, retry_count = retry_count + 1, started_at = %(now)s, triggered_at = clock_timestamp(),
    input_references = %(references)s, storage_prefix = coalesce(storage_prefix, %(storage_prefix)s)
WHERE id = %(id)s AND status = 'running' AND external_id = %(external_id)s
    AND failure_reason IS DISTINCT FROM %(timeout)s AND triggered_at IS NOT DISTINCT FROM %(triggered_at)s
RETURNING storage_prefix, triggered_at;

-- restore: a retry that RunPod has not taken never was
UPDATE forecasts.forecast_runs
SET external_id = %(external_id)s, retry_count = retry_count - 1,
    started_at = %(started_at)s, triggered_at = %(triggered_at)s
WHERE id = %(id)s AND status = 'running' AND external_id IS NULL AND triggered_at = %(attempt)s;
