-- take_turn: let two makers of a schedule of one name take turns
SELECT pg_advisory_xact_lock(hashtextextended('signalbox.job_schedules ' || %(name)s, 0));

-- find: return a schedule by name or id
SELECT id::text, name, job_type, payload_template, options, schedule_type, cron_expression, interval_ms, run_at, starts_at,
    timezone, catch_up, enabled, paused_at, paused_by, paused_reason, last_run_at, next_run_at, run_count, missed_count, max_runs,
    expires_at, error, tenant, created_by, created_at, updated_at, metadata
FROM signalbox.job_schedules WHERE name = %(name)s OR id = %(id)s;

-- lock: return the same, and let nobody else change or run it before this transaction ends
SELECT id::text, name, job_type, payload_template, options, schedule_type, cron_expression, interval_ms, run_at, starts_at,
    timezone, catch_up, enabled, paused_at, paused_by, paused_reason, last_run_at, next_run_at, run_count, missed_count, max_runs,
    expires_at, error, tenant, created_by, created_at, updated_at, metadata
FROM signalbox.job_schedules WHERE name = %(name)s OR id = %(id)s FOR UPDATE;

-- list: return a page of schedules by name
SELECT id::text, name, job_type, payload_template, options, schedule_type, cron_expression, interval_ms, run_at, starts_at,
    timezone, catch_up, enabled, paused_at, paused_by, paused_reason, last_run_at, next_run_at, run_count, missed_count, max_runs,
    expires_at, error, tenant, created_by, created_at, updated_at, metadata
FROM signalbox.job_schedules
WHERE (%(job_type)s::text IS NULL OR job_type = %(job_type)s) AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
    AND (%(after_name)s::text IS NULL OR name > %(after_name)s)
ORDER BY name LIMIT %(limit)s;

-- store: add a schedule, or replace its row
INSERT INTO signalbox.job_schedules (
    id, name, job_type, payload_template, options, schedule_type, cron_expression, interval_ms, run_at, starts_at,
    timezone, catch_up, enabled, paused_at, paused_by, paused_reason, last_run_at, next_run_at, run_count, missed_count,
    max_runs, expires_at, error, tenant, created_by, created_at, updated_at, metadata
) VALUES (
    %(id)s, %(name)s, %(job_type)s, %(payload_template)s, %(options)s, %(schedule_type)s, %(cron_expression)s,
    %(interval_ms)s, %(run_at)s, %(starts_at)s, %(timezone)s, %(catch_up)s, %(enabled)s, %(paused_at)s,
    %(paused_by)s, %(paused_reason)s, %(last_run_at)s, %(next_run_at)s, %(run_count)s, %(missed_count)s, %(max_runs)s,
    %(expires_at)s, %(error)s, %(tenant)s, %(created_by)s, %(created_at)s, %(updated_at)s, %(metadata)s
)
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name, job_type = excluded.job_type, payload_template = excluded.payload_template, options =
    excluded.options, schedule_type = excluded.schedule_type, cron_expression = excluded.cron_expression,
    interval_ms = excluded.interval_ms, run_at = excluded.run_at, starts_at = excluded.starts_at, timezone =
    excluded.timezone, catch_up = excluded.catch_up, enabled = excluded.enabled, paused_at = excluded.paused_at,
    paused_by = excluded.paused_by, paused_reason = excluded.paused_reason, last_run_at = excluded.last_run_at, next_run_at = excluded.next_run_at,
    run_count = excluded.run_count, missed_count = excluded.missed_count, max_runs = excluded.max_runs, expires_at =
    excluded.expires_at, error = excluded.error, tenant = excluded.tenant, updated_at = excluded.updated_at,
    metadata = excluded.metadata;

-- change: set whether it is paused, and when it runs next
UPDATE signalbox.job_schedules
SET enabled = %(enabled)s, paused_at = %(paused_at)s, paused_by = %(paused_by)s, paused_reason = %(paused_reason)s,
    next_run_at = %(next_run_at)s, updated_at = %(updated_at)s
WHERE id = %(id)s;

-- delete: remove a schedule
DELETE FROM signalbox.job_schedules WHERE id = %(id)s;
