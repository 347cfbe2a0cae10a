-- take_due: lock a batch of due schedules, from an instant on, without those that another run has locked
SELECT id::text, name, job_type, payload_template, options, schedule_type, cron_expression, interval_ms, run_at, starts_at,
    timezone, catch_up, enabled, paused_at, paused_by, paused_reason, last_run_at, next_run_at, run_count, missed_count, max_runs,
    expires_at, error, tenant, created_by, created_at, updated_at, metadata
FROM signalbox.job_schedules
WHERE enabled AND next_run_at <= %(now)s AND (next_run_at, id) > (%(after)s, %(after_id)s::uuid)
    AND id <> ALL (%(spent)s::uuid[])
ORDER BY next_run_at, id
LIMIT %(batch)s
-- Another run finishes the schedules that it has locked; after that they are no longer due.
FOR UPDATE SKIP LOCKED;

-- move: set schedules to their next instant
UPDATE signalbox.job_schedules AS s
SET next_run_at = t.next_run_at, last_run_at = coalesce(t.last_run_at, s.last_run_at), run_count = s.run_count + t.runs,
    missed_count = s.missed_count + t.missed, error = NULL, updated_at = %(now)s
FROM jsonb_to_recordset(%(turns)s::jsonb) AS t (
    id uuid, next_run_at timestamptz, last_run_at timestamptz, runs integer, missed integer
)
WHERE s.id = t.id;

-- blame: record why schedules stay where they are
UPDATE signalbox.job_schedules AS s SET error = f.error, updated_at = %(now)s
FROM jsonb_to_recordset(%(failures)s::jsonb) AS f (id uuid, error text)
WHERE s.id = f.id;
