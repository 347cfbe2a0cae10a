-- serves: 1
-- Failed runs lose their stored data as complete ones do, so transition_forecasts looks for both.

CREATE INDEX forecast_runs_stored ON forecasts.forecast_runs (model, run_timestamp)
    WHERE status IN ('complete', 'failed');
DROP INDEX forecasts.forecast_runs_complete;
