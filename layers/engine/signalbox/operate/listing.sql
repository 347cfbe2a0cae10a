-- list_jobs: return a page of the jobs that match, newest first
SELECT id::text, job_type, job_name, status, lane, priority, tenant, cap_key, subject_id, correlation_id, job_group,
    schedule_id::text, parent_job_id::text, tags, attempts, max_attempts, unmet_dependencies, progress_percent,
    progress_message, health_status, worker_id, paused_by, held_by, scheduled_for, created_at, queued_at, started_at,
    completed_at, heartbeat_at, cancel_requested_at,
    (extract(epoch FROM actual_duration) * 1000)::bigint AS duration_ms,
    error_details ->> 'type' AS error_type, left(error_details ->> 'message', 300) AS error_message,
    -- The worker has been silent for this long, once it has missed three heartbeats.
    CASE WHEN status = 'running' AND clock_timestamp() - coalesce(heartbeat_at, started_at) > interval '45 s'
        THEN floor(extract(epoch FROM clock_timestamp() - coalesce(heartbeat_at, started_at)))::integer END AS silent_seconds
FROM signalbox.jobs
WHERE (%(before_id)s::uuid IS NULL OR id < %(before_id)s::uuid)
    AND (%(from_id)s::uuid IS NULL OR id >= %(from_id)s::uuid) AND (%(until_id)s::uuid IS NULL OR id < %(until_id)s::uuid)
    AND
    -- include: job_filter.matches
ORDER BY
    -- include: job_filter.newest_first
LIMIT %(limit)s;

-- pick: return the ids of the next jobs to work on, in the same order
SELECT id::text FROM signalbox.jobs
WHERE status = ANY (%(statuses)s::text[])
    AND (%(before_id)s::uuid IS NULL OR id < %(before_id)s::uuid)
    AND
    -- include: job_filter.matches
ORDER BY
    -- include: job_filter.newest_first
LIMIT %(limit)s;

-- count_by_status: count the jobs that match, by their state
SELECT status, count(*) FROM signalbox.jobs
WHERE
    -- include: job_filter.matches
GROUP BY status;

-- count_some: count the jobs that match, up to a number
SELECT status, count(*) FROM (
    SELECT status FROM signalbox.jobs
    WHERE (NOT %(ended)s OR completed_at IS NOT NULL) AND
        -- include: job_filter.matches
    LIMIT %(most)s
) AS counted
GROUP BY status;

-- read_clock: return the database's time, which created_at uses
SELECT clock_timestamp();

-- find_ids: return those of these jobs that exist, with their states
SELECT id::text, status FROM signalbox.jobs WHERE id = ANY (%(ids)s::uuid[]);
