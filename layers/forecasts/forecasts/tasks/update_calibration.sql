-- find_tiles: find tiles with enough samples of the model's runs
-- Each metric of a run describes the same samples, so they count once.
SELECT tile_id FROM (
    SELECT result.tile_id, sum(result.sample_count) AS samples
    FROM forecasts.verification_results AS result
    JOIN forecasts.forecast_runs AS run ON run.id = result.forecast_run_id
    WHERE run.model = %(model)s AND result.created_at >= %(since)s AND result.created_at < %(until)s
    GROUP BY result.tile_id, result.metric
) AS by_metric
GROUP BY tile_id
HAVING max(samples) >= %(least)s
ORDER BY tile_id;

-- find_request: find out whether RunPod was asked for this slot
SELECT external_id FROM forecasts.calibration_requests WHERE slot = %(slot)s;

-- begin: note that RunPod is about to be asked, with the coefficients before; of two workers, only one may
-- The time is the clock's, since it is compared with when a person really reviewed a candidate.
INSERT INTO forecasts.calibration_requests (slot, tiles, coefficients_before, requested_at)
SELECT %(slot)s, %(tiles)s, coalesce(jsonb_object_agg(tile_id, coefficients), '{}'), clock_timestamp()
FROM forecasts.calibration_coefficients WHERE tile_id = ANY (%(tiles)s)
ON CONFLICT (slot) DO NOTHING;

-- withdraw: remove a request that RunPod has not taken
DELETE FROM forecasts.calibration_requests WHERE slot = %(slot)s AND external_id IS NULL;

-- confirm: note that RunPod has taken it under this id
UPDATE forecasts.calibration_requests SET external_id = %(external_id)s WHERE slot = %(slot)s;
