-- find: return everything known about a job, except the token, which only its worker knows
SELECT to_jsonb(j) - 'lease_token' - 'actual_duration' - 'estimated_duration' AS job,
    (extract(epoch FROM j.actual_duration) * 1000)::bigint AS duration_ms,
    (extract(epoch FROM j.estimated_duration) * 1000)::bigint AS estimated_ms,
    CASE WHEN status = 'running' AND clock_timestamp() - coalesce(heartbeat_at, started_at) > interval '45 s'
        THEN floor(extract(epoch FROM clock_timestamp() - coalesce(heartbeat_at, started_at)))::integer END AS silent_seconds
FROM signalbox.jobs AS j WHERE id = %(id)s;

-- find_progress: return how far a job is
SELECT id::text, status, progress_percent, progress_message, attempts, max_attempts, pieces, started_at, heartbeat_at,
    completed_at
FROM signalbox.jobs WHERE id = %(id)s;

-- list_attempts: return the newest attempts, newest first
SELECT attempt_number, status, lane, worker_id, execution_node, queued_at, started_at, completed_at, duration_ms,
    error_code, error_message, error_stack, memory_used_mb, cpu_time_ms, metadata
FROM signalbox.attempts WHERE job_id = %(id)s ORDER BY attempt_number DESC LIMIT 100;

-- list_files: return what is known of the files that it has written
SELECT key, sha256, bytes, content_type, kept_until, written_at FROM signalbox.job_files WHERE job_id = %(id)s ORDER BY key LIMIT 1000;

-- list_parents: return the jobs that it waits for, or waited for
SELECT d.depends_on_job_id::text AS id, p.job_type, p.status, d.dependency_type, d.on_failure, d.satisfied
FROM signalbox.job_dependencies AS d JOIN signalbox.jobs AS p ON p.id = d.depends_on_job_id
WHERE d.job_id = %(id)s AND (%(tenant)s::text IS NULL OR p.tenant = %(tenant)s)
ORDER BY d.satisfied, d.depends_on_job_id LIMIT 100;

-- list_dependents: return the jobs that wait for it, or waited
SELECT d.job_id::text AS id, j.job_type, j.status, d.dependency_type, d.on_failure, d.satisfied
FROM signalbox.job_dependencies AS d JOIN signalbox.jobs AS j ON j.id = d.job_id
WHERE d.depends_on_job_id = %(id)s AND (%(tenant)s::text IS NULL OR j.tenant = %(tenant)s)
ORDER BY d.satisfied, d.job_id LIMIT 100;

-- find_group: return the progress of its group
SELECT id, total, completed, failed, cancelled, sealed, completion_job_id, created_at, finished_at
FROM signalbox.job_groups WHERE id = %(group)s;

-- find_dead_letter: return its dead letter
SELECT id, status, failure_reason, error_type, final_error_message, fingerprint, severity, total_attempts, redrives,
    resolution_notes, resolved_by, resolved_at, redriven_at, last_failed_at
FROM signalbox.dead_letter_jobs WHERE original_job_id = %(id)s;

-- find_schedule: return the schedule that submitted it
SELECT id, name, schedule_type, cron_expression, interval_ms, run_at, timezone, enabled, paused_at, next_run_at
FROM signalbox.job_schedules WHERE id = %(schedule)s;

-- list_children: return the jobs that it has submitted
SELECT id::text, job_type, status FROM signalbox.jobs
WHERE parent_job_id = %(id)s AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
ORDER BY jobs.id LIMIT 100;

-- list_holds: return the caps, rates and pauses that hold it, each with its running jobs and those held before this one
SELECT c.kind, c.key, c.paused, c.max_running, c.rate, c.per_seconds, c.next_at, c.reason, c.changed_by,
    coalesce(j.held_since, j.updated_at) AS since, (
        SELECT count(*) FROM signalbox.jobs AS r WHERE r.status = 'running' AND c.key = CASE c.kind
            WHEN 'type' THEN r.job_type WHEN 'lane' THEN r.lane WHEN 'tenant' THEN r.tenant ELSE r.cap_key END
    ) AS running, (
        SELECT count(*) FROM signalbox.jobs AS h
        WHERE h.held_by = j.held_by AND (h.priority, h.id) < (j.priority, j.id)
    ) AS before
FROM signalbox.jobs AS j
JOIN signalbox.job_caps AS c ON c.key = CASE c.kind
    WHEN 'type' THEN j.job_type WHEN 'lane' THEN j.lane WHEN 'tenant' THEN j.tenant ELSE j.cap_key END
WHERE j.id = %(id)s
    AND (j.held_by = c.kind || ':' || c.key OR (j.status = 'paused' AND j.paused_by IS NULL AND c.paused)
        -- A suspect, which is looked at again.
        OR (j.status = 'pending' AND j.held_since IS NOT NULL AND j.held_by IS NULL AND c.max_running IS NOT NULL))
ORDER BY c.kind, c.key;
