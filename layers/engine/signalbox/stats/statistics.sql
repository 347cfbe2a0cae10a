-- take_snapshot: let this transaction read everything as of one instant
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- list_figures: return the figures of the periods of a window, a row for each period, type and lane
SELECT starts_at, job_type, begun, completed, failed, timed_out, cancelled, throttled, others, total_ms, most_ms,
    waited_ms, durations, waits, most_memory_mb, cpu_ms
FROM signalbox.job_metrics
WHERE period = %(period)s AND starts_at >= %(since)s AND starts_at < %(until)s
    AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
ORDER BY starts_at, job_type, lane;

-- find_counted: return the newest minute that has been rolled up; it may have been counted before it was over
SELECT max(starts_at) FROM signalbox.job_metrics WHERE period = 'minute' AND starts_at < %(until)s;

-- count_attempts: return the figures of the minutes since, as they are now, of all jobs or of a tenant's
SELECT starts_at, job_type, begun, completed, failed, timed_out, cancelled, throttled, others, total_ms, most_ms,
    waited_ms, durations, waits, most_memory_mb, cpu_ms
FROM signalbox.count_attempts(%(since)s, %(until)s, %(bounds)s::float8[], %(longest)s, %(tenant)s)
WHERE %(job_type)s::text IS NULL OR job_type = %(job_type)s
ORDER BY starts_at, job_type, lane;

-- count_live: count the jobs that have not ended, by status, lane and type; and since when they are due
-- Each branch uses one partial index: jobs that have ended, however many, are not read.
SELECT status, lane, job_type, count(*) AS number, count(due_since) AS waiting, min(due_since) AS oldest
FROM (
    SELECT status, lane, job_type, tenant, CASE
            WHEN status = 'queued' THEN coalesce(queued_at, created_at)
            WHEN coalesce(scheduled_for, send_at) <= %(now)s THEN coalesce(scheduled_for, send_at)
        END AS due_since
    FROM signalbox.jobs WHERE send_at IS NOT NULL
    UNION ALL
    SELECT status, lane, job_type, tenant, NULL FROM signalbox.jobs WHERE status = 'pending' AND unmet_dependencies > 0
    UNION ALL
    SELECT status, lane, job_type, tenant, NULL FROM signalbox.jobs WHERE held_by IS NOT NULL
    UNION ALL
    SELECT status, lane, job_type, tenant, NULL FROM signalbox.jobs WHERE status IN ('running', 'paused')
) AS live
WHERE (%(job_type)s::text IS NULL OR job_type = %(job_type)s) AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
GROUP BY status, lane, job_type;

-- count_silent: count the unhealthy running jobs, their workers, and the jobs that have missed three heartbeats
SELECT count(*) FILTER (WHERE unwell), count(DISTINCT worker_id) FILTER (WHERE unwell), count(*) FILTER (WHERE silent),
    floor(extract(epoch FROM max(for_long) FILTER (WHERE silent)))::integer
FROM (
    SELECT j.*, health_status IN ('STALE', 'FAILED') AS unwell, for_long > interval '45 s' AS silent, for_long
    FROM signalbox.jobs AS j
    CROSS JOIN LATERAL (SELECT clock_timestamp() - coalesce(heartbeat_at, started_at) AS for_long) AS heard
    WHERE status = 'running'
) AS running
WHERE (%(job_type)s::text IS NULL OR job_type = %(job_type)s) AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s);

-- count_cancelled: count the jobs that were cancelled in a window
SELECT count(*) FROM signalbox.jobs
WHERE status = 'cancelled' AND completed_at >= %(since)s AND completed_at < %(until)s
    AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s) AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s);

-- count_dead_letters: count by type the pending ones, those under investigation, and the jobs failed in a window and lately
SELECT job_type, sum(pending)::integer, sum(investigating)::integer, sum(failed)::integer, sum(lately)::integer
FROM (
    SELECT job_type, tenant, count(*) FILTER (WHERE status = 'pending') AS pending,
        count(*) FILTER (WHERE status = 'investigating') AS investigating, 0 AS failed, 0 AS lately
    FROM signalbox.dead_letter_jobs WHERE status IN ('pending', 'investigating')
    GROUP BY job_type, tenant
    UNION ALL
    SELECT job_type, tenant, 0, 0, count(*) FILTER (WHERE last_failed_at >= %(since)s),
        count(*) FILTER (WHERE last_failed_at >= %(lately)s)
    FROM signalbox.dead_letter_jobs
    -- Redriven ones are left out: their jobs run again, or have ended since. So are ignored ones, which need nobody. The
    -- index leads by status to the window.
    WHERE status IN ('pending', 'investigating', 'resolved') AND last_failed_at >= least(%(since)s, %(lately)s)
        AND last_failed_at < %(until)s AND source = 'job'
    GROUP BY job_type, tenant
) AS parts
WHERE (%(job_type)s::text IS NULL OR job_type = %(job_type)s) AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
GROUP BY job_type;

-- list_tenants: return the tenants with live jobs or open dead letters, the longest waiting first
SELECT tenant, sum(waiting)::integer AS waiting, sum(running)::integer AS running, sum(open)::integer AS open_dead_letters,
    min(oldest) AS waiting_since
FROM (
    SELECT tenant, count(due) AS waiting, 0 AS running, 0 AS open, min(due) AS oldest
    FROM (
        SELECT tenant, CASE WHEN status = 'queued' THEN coalesce(queued_at, created_at)
            WHEN coalesce(scheduled_for, send_at) <= %(now)s THEN coalesce(scheduled_for, send_at) END AS due
        FROM signalbox.jobs WHERE send_at IS NOT NULL
    ) AS live
    GROUP BY tenant
    UNION ALL
    SELECT tenant, 0, count(*), 0, NULL FROM signalbox.jobs WHERE status = 'running' GROUP BY tenant
    UNION ALL
    SELECT tenant, 0, 0, count(*), NULL FROM signalbox.dead_letter_jobs
    WHERE status IN ('pending', 'investigating') GROUP BY tenant
) AS parts
WHERE tenant IS NOT NULL
GROUP BY tenant
ORDER BY waiting_since, open_dead_letters DESC, tenant
LIMIT 100;

-- list_begun: count the attempts that each lane has begun lately
SELECT lane, sum(begun)::bigint FROM signalbox.job_metrics
WHERE period = 'minute' AND starts_at >= %(since)s AND starts_at < %(until)s
GROUP BY lane;
