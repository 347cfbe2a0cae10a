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
    AND (%(ids)s::uuid[] IS NULL OR id = ANY (%(ids)s::uuid[]))
    AND (%(status)s::text IS NULL OR status = %(status)s)
    AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
    AND (%(lane)s::text IS NULL OR lane = %(lane)s)
    AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
    AND (%(cap_key)s::text IS NULL OR cap_key = %(cap_key)s)
    AND (%(group)s::text IS NULL OR job_group = %(group)s)
    AND (%(tag)s::text IS NULL OR tags @> ARRAY[%(tag)s::text])
    AND (%(subject)s::text IS NULL OR subject_id = %(subject)s)
    AND (%(correlation)s::text IS NULL OR correlation_id = %(correlation)s)
    AND (%(parent)s::uuid IS NULL OR parent_job_id = %(parent)s::uuid)
    AND (%(schedule)s::text IS NULL OR schedule_id = (
        SELECT s.id FROM signalbox.job_schedules AS s WHERE s.name = %(schedule)s OR s.id::text = %(schedule)s LIMIT 1
    ))
    -- By the primary key as far as it goes: a page of the last hour must not read a year.
    AND (%(since)s::timestamptz IS NULL OR (id >= %(first_id)s::uuid AND created_at >= %(since)s))
    AND (%(until)s::timestamptz IS NULL OR created_at <= %(until)s)
ORDER BY id DESC
LIMIT %(limit)s;

-- pick: the ids of the next ones to work on, in the same order
SELECT id::text FROM signalbox.jobs
WHERE status = ANY (%(statuses)s::text[])
    AND (%(before_id)s::uuid IS NULL OR id < %(before_id)s::uuid)
    AND (%(ids)s::uuid[] IS NULL OR id = ANY (%(ids)s::uuid[]))
    AND (%(status)s::text IS NULL OR status = %(status)s)
    AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
    AND (%(lane)s::text IS NULL OR lane = %(lane)s)
    AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
    AND (%(cap_key)s::text IS NULL OR cap_key = %(cap_key)s)
    AND (%(group)s::text IS NULL OR job_group = %(group)s)
    AND (%(tag)s::text IS NULL OR tags @> ARRAY[%(tag)s::text])
    AND (%(subject)s::text IS NULL OR subject_id = %(subject)s)
    AND (%(correlation)s::text IS NULL OR correlation_id = %(correlation)s)
    AND (%(parent)s::uuid IS NULL OR parent_job_id = %(parent)s::uuid)
    AND (%(schedule)s::text IS NULL OR schedule_id = (
        SELECT s.id FROM signalbox.job_schedules AS s WHERE s.name = %(schedule)s OR s.id::text = %(schedule)s LIMIT 1
    ))
    AND (%(since)s::timestamptz IS NULL OR (id >= %(first_id)s::uuid AND created_at >= %(since)s))
    AND (%(until)s::timestamptz IS NULL OR created_at <= %(until)s)
ORDER BY id DESC
LIMIT %(limit)s;

-- count_by_status: how many match, by their state
SELECT status, count(*) FROM signalbox.jobs
WHERE (%(ids)s::uuid[] IS NULL OR id = ANY (%(ids)s::uuid[]))
    AND (%(status)s::text IS NULL OR status = %(status)s)
    AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
    AND (%(lane)s::text IS NULL OR lane = %(lane)s)
    AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
    AND (%(cap_key)s::text IS NULL OR cap_key = %(cap_key)s)
    AND (%(group)s::text IS NULL OR job_group = %(group)s)
    AND (%(tag)s::text IS NULL OR tags @> ARRAY[%(tag)s::text])
    AND (%(subject)s::text IS NULL OR subject_id = %(subject)s)
    AND (%(correlation)s::text IS NULL OR correlation_id = %(correlation)s)
    AND (%(parent)s::uuid IS NULL OR parent_job_id = %(parent)s::uuid)
    AND (%(schedule)s::text IS NULL OR schedule_id = (
        SELECT s.id FROM signalbox.job_schedules AS s WHERE s.name = %(schedule)s OR s.id::text = %(schedule)s LIMIT 1
    ))
    AND (%(since)s::timestamptz IS NULL OR (id >= %(first_id)s::uuid AND created_at >= %(since)s))
    AND (%(until)s::timestamptz IS NULL OR created_at <= %(until)s)
GROUP BY status;

-- read_clock: the database's, which created_at is by
SELECT clock_timestamp();

-- find_ids: those of these jobs that there are, with their states
SELECT id::text, status FROM signalbox.jobs WHERE id = ANY (%(ids)s::uuid[]);
