-- list_runs: return a page of the ledger by the filters given, newest first
SELECT id, job_type, slot, reference_time, trigger, status, items, more, step, reason, error, worker_id, started_at,
    finished_at, duration_ms
FROM signalbox.job_history
WHERE (%(before_id)s::bigint IS NULL OR id < %(before_id)s)
    AND (%(after_id)s::bigint IS NULL OR id > %(after_id)s)
    AND (%(task)s::text IS NULL OR job_type = %(task)s)
    AND (%(status)s::text IS NULL OR status = %(status)s)
    AND (%(trigger)s::text IS NULL OR trigger = %(trigger)s)
    AND (%(since)s::timestamptz IS NULL OR slot >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR slot <= %(until)s)
ORDER BY id DESC
LIMIT %(limit)s;
