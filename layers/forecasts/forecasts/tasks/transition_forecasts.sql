-- list_due: list the next runs of a model whose data is old enough, oldest first, by the index forecast_runs_stored
-- A failed run without a folder has stored nothing.
SELECT id, model, run_timestamp::text, storage_prefix FROM forecasts.forecast_runs
WHERE status IN ('complete', 'failed') AND (status = 'complete' OR storage_prefix <> '') AND model = %(model)s
    AND run_timestamp < %(before)s AND run_timestamp > %(after)s::timestamptz
ORDER BY run_timestamp
LIMIT %(page)s;

-- find_sharer: find another run whose data lies in the folder, or in one within it
-- In byte order '0' follows '/': so everything that begins with the folder's name and a slash is one range of the index
-- forecast_runs_by_prefix. The order keeps the planner to it: it would otherwise read the table for the first match,
-- although there is mostly none.
SELECT id FROM forecasts.forecast_runs
WHERE id <> %(id)s AND status <> 'deleted'
    AND storage_prefix COLLATE "C" >= %(folder)s AND storage_prefix COLLATE "C" < %(folder)s || '0'
    AND (storage_prefix = %(folder)s OR storage_prefix COLLATE "C" >= %(folder)s || '/')
ORDER BY storage_prefix COLLATE "C"
LIMIT 1;

-- mark_deleted: note that nothing is left of the run's data
UPDATE forecasts.forecast_runs SET status = 'deleted' WHERE id = %(id)s AND status IN ('complete', 'failed');
