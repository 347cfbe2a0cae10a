-- The demo's jobs: a quiet night's work, what the outage of engine.sql left, and jobs that wait for their time. Made
-- for the instant 2026-01-05T02:30:00Z, and only rows that the engine itself could have left.

-- The ids of jobs sort by time.
CREATE FUNCTION pg_temp.job_id(made timestamptz, number bigint) RETURNS uuid LANGUAGE sql AS $$
    SELECT (lpad(to_hex((extract(epoch FROM made) * 1000)::bigint), 12, '0') || '70008000'
        || lpad(to_hex(number), 12, '0'))::uuid
$$;

-- Since the evening, two jobs every quarter of an hour, except during the outage. roll_up_metrics counts them.
WITH made AS (
    SELECT pg_temp.job_id(at, number) AS id, at, number
    FROM generate_series(timestamptz '2026-01-04 20:30Z', timestamptz '2026-01-05 02:15Z', interval '15 minutes') AS at
    CROSS JOIN generate_series(1, 2) AS number
    WHERE at NOT BETWEEN '2026-01-05 01:38Z' AND '2026-01-05 02:05Z'
), done AS (
    INSERT INTO signalbox.jobs (
        id, job_type, lane, status, payload, tenant, attempts, executions, max_attempts, timeout_ms, progress_percent,
        created_at, queued_at, started_at, completed_at, updated_at
    )
    SELECT id, 'deliver_notification', 'normal', 'completed',
        format('{"channel": "in_app", "recipients": ["reader-%s"], "body": "all is well"}', number)::jsonb,
        'sample', 1, 1, 5, 120000, 100, at, at, at + interval '0.2 s', at + number * interval '0.3 s',
        at + number * interval '0.3 s'
    FROM made
)
INSERT INTO signalbox.job_executions
    (job_id, attempt_number, job_type, lane, status, lease_token, worker_id, queued_at, started_at, completed_at)
SELECT id, 1, 'deliver_notification', 'normal', 'completed', gen_random_uuid(), 'sample', at, at + interval '0.2 s',
    at + number * interval '0.3 s'
FROM made;

-- Thirty from the end of November, older than jobs are kept: prune_jobs deletes them.
INSERT INTO signalbox.jobs (
    id, job_type, lane, status, attempts, executions, max_attempts, timeout_ms, progress_percent, created_at, queued_at,
    started_at, completed_at, updated_at
)
SELECT pg_temp.job_id(at, 1), 'deliver_notification', 'low', 'completed', 1, 1, 5, 120000, 100, at, at, at, at, at
FROM generate_series(timestamptz '2025-11-30 00:00Z', timestamptz '2025-11-30 05:00Z', interval '10 minutes') AS at
LIMIT 30;

-- Three that wait for half past two: dispatch_jobs sends them, and a worker runs them.
INSERT INTO signalbox.jobs (
    id, job_type, lane, priority, payload, tenant, max_attempts, timeout_ms, created_at, updated_at, scheduled_for,
    send_at
)
SELECT pg_temp.job_id('2026-01-05 01:31Z', number), 'deliver_notification', 'high', 2,
    format('{"channel": "in_app", "recipients": ["reader-%s"], "body": "good morning"}', number)::jsonb,
    'sample', 5, 120000, '2026-01-05 01:31Z', '2026-01-05 01:31Z', '2026-01-05 02:30Z', '2026-01-05 02:30Z'
FROM generate_series(1, 3) AS number;

-- The job that was running when the power went: still `running`, its lease expired. rescue_jobs has it retried.
INSERT INTO signalbox.jobs (
    id, job_type, lane, status, payload, tenant, attempts, executions, max_attempts, timeout_ms, worker_id,
    lease_token, lease_expires_at, heartbeat_at, created_at, queued_at, started_at, updated_at
)
VALUES (
    pg_temp.job_id('2026-01-05 01:37:50Z', 1), 'deliver_notification', 'normal', 'running',
    '{"channel": "in_app", "recipients": ["reader-1"], "body": "all is well"}', 'sample', 1, 1, 5, 120000,
    'sample/lost', gen_random_uuid(), '2026-01-05 01:44:21Z', '2026-01-05 01:37:55Z', '2026-01-05 01:37:50Z',
    '2026-01-05 01:37:50Z', '2026-01-05 01:37:51Z', '2026-01-05 01:37:55Z'
);

-- Two that failed for good an hour ago, in the same way: notify_dead_letters reports them. Four others were closed in
-- November, and archive_dead_letters moves them to the audit log.
WITH failed AS (
    INSERT INTO signalbox.jobs (
        id, job_type, lane, status, payload, error_details, attempts, executions, max_attempts, timeout_ms, created_at,
        queued_at, started_at, completed_at, updated_at
    )
    SELECT pg_temp.job_id(at, number), 'deliver_webhook', 'normal', 'failed',
        '{"url": "https://example.com/gone", "event_type": "made", "event": {}, "secret": "signalbox/webhooks/sample"}',
        '{"type": "Permanent", "message": "example.com answered 410"}', 1, 1, 5, 45000, at, at, at, at, at
    FROM generate_series(1, 2) AS number CROSS JOIN (SELECT timestamptz '2026-01-05 01:30:10Z' AS at) AS hour
    RETURNING id, payload, completed_at
)
INSERT INTO signalbox.dead_letter_jobs (
    original_job_id, job_type, payload, failure_reason, error_type, final_error_message, total_attempts, fingerprint,
    first_failed_at, last_failed_at, created_at, updated_at
)
SELECT id, 'deliver_webhook', payload, 'permanent', 'Permanent', 'example.com answered 410', 1,
    md5('deliver_webhook Permanent'), completed_at, completed_at, completed_at, completed_at
FROM failed;
INSERT INTO signalbox.dead_letter_jobs (
    source, job_type, payload, failure_reason, error_type, total_attempts, fingerprint, status, resolved_at,
    resolved_by, resolution_notes, notified_at, first_failed_at, last_failed_at, created_at, updated_at
)
SELECT 'message', 'unknown', '"no job of ours"', 'unreadable', 'Unreadable', 10, md5('unknown Unreadable'), 'ignored',
    at, 'sample', 'somebody tried the queue out', at, at, at, at, at
FROM generate_series(timestamptz '2025-11-20 09:00Z', timestamptz '2025-11-20 12:00Z', interval '1 hour') AS at;

-- Every night at half past three in Berlin a person gets a report of the night: run_schedules submits tonight's job.
INSERT INTO signalbox.job_schedules (
    name, job_type, payload_template, schedule_type, cron_expression, timezone, tenant, created_by, last_run_at,
    next_run_at, run_count, created_at, updated_at
)
VALUES (
    'how-the-night-was', 'deliver_notification', '{"channel": "in_app", "recipients": ["reader-1"], "body": "quiet"}',
    'cron', '30 3 * * *', 'Europe/Berlin', 'sample', 'sample', '2026-01-04 02:30Z', '2026-01-05 02:30Z', 12,
    '2025-12-23 15:00Z', '2026-01-04 02:30Z'
);
