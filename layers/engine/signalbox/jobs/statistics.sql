-- list_figures: the figures of the periods of a window, a row each period, type and lane
SELECT starts_at, job_type, begun, completed, failed, timed_out, cancelled, others, total_ms, most_ms, waited_ms,
    durations, waits, most_memory_mb, cpu_ms
FROM signalbox.job_metrics
WHERE period = %(period)s AND starts_at >= %(since)s AND starts_at < %(until)s
    AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
ORDER BY starts_at, job_type, lane;

-- count_live: the jobs that have not ended, and those that failed, by status, lane and type; and since when they are due
-- Each branch is one partial index: of the jobs that are done with, however many, none is read.
SELECT status, lane, job_type, count(*) AS number, count(due_since) AS waiting, min(due_since) AS oldest
FROM (
    SELECT status, lane, job_type, CASE
            WHEN status = 'queued' THEN coalesce(queued_at, created_at)
            WHEN coalesce(scheduled_for, send_at) <= %(now)s THEN coalesce(scheduled_for, send_at)
        END AS due_since
    FROM signalbox.jobs WHERE send_at IS NOT NULL
    UNION ALL
    SELECT status, lane, job_type, NULL FROM signalbox.jobs WHERE status = 'pending' AND unmet_dependencies > 0
    UNION ALL
    SELECT status, lane, job_type, NULL FROM signalbox.jobs WHERE status IN ('running', 'paused', 'failed')
) AS live
WHERE %(job_type)s::text IS NULL OR job_type = %(job_type)s
GROUP BY status, lane, job_type;

-- count_silent: the running jobs that have not been heard of, and how many workers they belong to
SELECT count(*), count(DISTINCT worker_id) FROM signalbox.jobs
WHERE status = 'running' AND health_status IN ('STALE', 'FAILED')
    AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s);

-- count_dead_letters: by type those that wait for somebody, those that somebody looks at, and the jobs that failed in a window
SELECT job_type, sum(pending)::integer, sum(investigating)::integer, sum(buried)::integer
FROM (
    SELECT job_type, count(*) FILTER (WHERE status = 'pending') AS pending,
        count(*) FILTER (WHERE status = 'investigating') AS investigating, 0 AS buried
    FROM signalbox.dead_letter_jobs WHERE status IN ('pending', 'investigating')
    GROUP BY job_type
    UNION ALL
    SELECT job_type, 0, 0, count(*) FROM signalbox.dead_letter_jobs
    -- Every status there is, so that the index on it leads to the window.
    WHERE status IN ('pending', 'investigating', 'resolved', 'ignored', 'redriven')
        AND last_failed_at >= %(since)s AND last_failed_at < %(until)s AND source = 'job'
    GROUP BY job_type
) AS parts
WHERE %(job_type)s::text IS NULL OR job_type = %(job_type)s
GROUP BY job_type;

-- list_begun: how many attempts each lane has begun lately
SELECT lane, sum(begun)::bigint FROM signalbox.job_metrics
WHERE period = 'minute' AND starts_at >= %(since)s AND starts_at < %(until)s
GROUP BY lane;
