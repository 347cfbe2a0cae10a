-- find_ends: find the newest run at the time of the poll, and the oldest that RunPod did not take and is still to take
-- Both use the unique index on (model, run_timestamp).
SELECT
    (
        SELECT max(run_timestamp) FROM forecasts.forecast_runs
        WHERE model = %(model)s AND run_timestamp <= %(now)s
    ),
    (
        SELECT min(run_timestamp) FROM forecasts.forecast_runs
        WHERE model = %(model)s AND run_timestamp > %(now)s - %(patience)s AND run_timestamp <= %(now)s
            AND status = 'failed' AND failure_reason = %(refused)s
    );

-- list_known: list the runs of a period, whatever has become of them
SELECT id, run_timestamp, radar_timestamp, status, failure_reason, triggered_at
FROM forecasts.forecast_runs
WHERE model = %(model)s AND run_timestamp >= %(since)s AND run_timestamp <= %(until)s;
