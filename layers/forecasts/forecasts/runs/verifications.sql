-- note_due: the complete runs between one day old and two, each with the window that follows it, once
-- The window depends on the run alone: whenever and however often the task runs, it is the same.
INSERT INTO forecasts.verification_requests (forecast_run_id, window_start, window_end, noted_at)
SELECT id, run_timestamp, run_timestamp + CASE model WHEN 'nowcast' THEN %(nowcast)s ELSE %(medium_range)s END, %(now)s
FROM forecasts.forecast_runs
WHERE status = 'complete' AND model IN ('medium_range', 'nowcast')
    AND run_timestamp >= %(oldest)s AND run_timestamp < %(youngest)s
ON CONFLICT (forecast_run_id, window_start) DO NOTHING;

-- list_waiting: list runs to verify now, oldest first; not those deleted or failed since
SELECT run.id, run.model, run.run_timestamp, run.storage_prefix, request.window_start, request.window_end
FROM forecasts.verification_requests AS request
JOIN forecasts.forecast_runs AS run ON run.id = request.forecast_run_id
WHERE request.status = 'waiting' AND run.status = 'complete'
    AND request.window_start >= %(patience)s AND request.window_start < %(youngest)s
ORDER BY request.window_start, run.id;

-- abandon_old: abandon requests whose observations have not come within the days allowed
UPDATE forecasts.verification_requests SET status = 'abandoned'
WHERE status = 'waiting' AND window_start < %(patience)s
RETURNING forecast_run_id, window_start;

-- count_unconfirmed: count requests that RunPod may have taken and has sent no result of
SELECT count(*) FROM forecasts.verification_requests AS request
WHERE status = 'unconfirmed' AND window_start >= %(patience)s AND window_start < %(youngest)s
    AND NOT EXISTS (
        SELECT FROM forecasts.verification_results AS result WHERE result.forecast_run_id = request.forecast_run_id
    );

-- list_unanswered: list what RunPod has had for longer than it may take without a result
SELECT request.forecast_run_id, request.window_start, request.external_id
FROM forecasts.verification_requests AS request
JOIN forecasts.forecast_runs AS run ON run.id = request.forecast_run_id
WHERE request.status = 'requested' AND run.status = 'complete' AND request.requested_at < %(overdue)s
    AND request.window_start >= %(patience)s AND request.window_start < %(youngest)s
    AND NOT EXISTS (
        SELECT FROM forecasts.verification_results AS result WHERE result.forecast_run_id = request.forecast_run_id
    )
ORDER BY request.window_start, request.forecast_run_id;

-- take_back: RunPod has ended this job without a result, so its verification waits again
UPDATE forecasts.verification_requests AS request SET status = 'waiting', external_id = NULL
WHERE forecast_run_id = %(forecast_run_id)s AND window_start = %(window_start)s
    AND status = 'requested' AND external_id = %(external_id)s
    AND NOT EXISTS (
        SELECT FROM forecasts.verification_results AS result WHERE result.forecast_run_id = request.forecast_run_id
    );

-- begin: note that RunPod is about to be asked; of two workers, only one may
UPDATE forecasts.verification_requests SET status = 'unconfirmed', requested_at = %(now)s
WHERE forecast_run_id = %(forecast_run_id)s AND window_start = %(window_start)s AND status = 'waiting';

-- give_up: note that RunPod has not taken it
UPDATE forecasts.verification_requests SET status = %(status)s
WHERE forecast_run_id = %(forecast_run_id)s AND window_start = %(window_start)s AND status = 'unconfirmed';

-- confirm: note that RunPod has taken it under this id
UPDATE forecasts.verification_requests SET status = 'requested', external_id = %(external_id)s
WHERE forecast_run_id = %(forecast_run_id)s AND window_start = %(window_start)s AND status = 'unconfirmed';
