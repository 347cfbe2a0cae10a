-- open: add a row for a run that is not taken; of two pollers, the unique constraints let one through
-- No conflict target: the radar's instant may be taken as well as the run's.
INSERT INTO forecasts.forecast_runs
    (model, run_timestamp, radar_timestamp, input_references, storage_prefix, started_at, triggered_at)
VALUES (
    %(model)s, %(run_timestamp)s, %(radar_timestamp)s, %(references)s, %(storage_prefix)s, %(now)s, clock_timestamp()
)
ON CONFLICT DO NOTHING
RETURNING id, storage_prefix, triggered_at;

-- retake: begin a failed run's next attempt, unless another poller was quicker
UPDATE forecasts.forecast_runs
SET status = 'running', external_id = NULL, failure_reason = NULL, completed_at = NULL,
    retry_count = CASE WHEN %(reset_retries)s THEN 0 ELSE retry_count END,
    radar_timestamp = %(radar_timestamp)s, input_references = %(references)s,
    storage_prefix = coalesce(storage_prefix, %(storage_prefix)s),
    started_at = %(now)s, triggered_at = clock_timestamp()
WHERE id = %(id)s AND status = 'failed' AND triggered_at IS NOT DISTINCT FROM %(seen)s
RETURNING id, storage_prefix, triggered_at;

-- confirm: store the id by which RunPod knows this attempt; a worker may have completed it already
-- The same id again is fine: the first time may have been committed and its answer lost.
UPDATE forecasts.forecast_runs
SET external_id = %(external_id)s
WHERE id = %(id)s AND triggered_at = %(triggered_at)s AND status <> 'failed'
    AND (external_id IS NULL OR external_id = %(external_id)s);

-- refuse: end an attempt that RunPod has not taken
UPDATE forecasts.forecast_runs
SET status = 'failed', failure_reason = %(reason)s
WHERE id = %(id)s AND triggered_at = %(triggered_at)s AND external_id IS NULL AND status = 'running';

-- read_calibration: read the coefficients of all tiles
SELECT tile_id, coefficients FROM forecasts.calibration_coefficients;
