-- list_jobs: a page of the jobs that match, newest first
SELECT id::text, job_type, job_name, status, lane, priority, tenant, cap_key, subject_id, correlation_id, job_group,
    schedule_id::text, parent_job_id::text, tags, attempts, max_attempts, unmet_dependencies, progress_percent,
    progress_message, health_status, worker_id, paused_by, held_by, scheduled_for, created_at, queued_at, started_at,
    completed_at, heartbeat_at, cancel_requested_at, (extract(epoch FROM actual_duration) * 1000)::bigint AS duration_ms,
    error_details ->> 'type' AS error_type, left(error_details ->> 'message', 300) AS error_message,
    -- Of its worker, after three missed heartbeats.
    CASE WHEN status = 'running' AND clock_timestamp() - coalesce(heartbeat_at, started_at) > interval '45 s'
        THEN floor(extract(epoch FROM clock_timestamp() - coalesce(heartbeat_at, started_at)))::integer END AS silent_seconds
FROM signalbox.jobs
WHERE (%(before_id)s::uuid IS NULL OR id < %(before_id)s::uuid)
    AND
    -- include: job_filter.matches
ORDER BY id DESC
LIMIT %(limit)s;

-- pick: the ids of the next ones to work on, in the same order
SELECT id::text FROM signalbox.jobs
WHERE status = ANY (%(statuses)s::text[])
    AND (%(before_id)s::uuid IS NULL OR id < %(before_id)s::uuid)
    AND
    -- include: job_filter.matches
ORDER BY id DESC
LIMIT %(limit)s;

-- count_by_status: how many match, by their state
SELECT status, count(*) FROM signalbox.jobs
WHERE
    -- include: job_filter.matches
GROUP BY status;

-- read_clock: the database's, which created_at is by
SELECT clock_timestamp();

-- find_ids: those of these jobs that there are, with their states
SELECT id::text, status FROM signalbox.jobs WHERE id = ANY (%(ids)s::uuid[]);
