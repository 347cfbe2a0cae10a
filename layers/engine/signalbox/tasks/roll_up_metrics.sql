-- find_rolled_up: up to when the figures are whole: the last run that left nothing, and the newest minute that there is
SELECT greatest(
    (SELECT max(reference_time) FROM signalbox.job_history
        WHERE job_type = 'roll_up_metrics' AND status = 'succeeded' AND NOT more AND reference_time < %(until)s),
    (SELECT max(starts_at) FROM signalbox.job_metrics WHERE period = 'minute' AND starts_at < %(until)s)
);

-- hold: one roll-up at a time; a second one waits, and then sees what the first has seen, or more
SELECT pg_advisory_xact_lock(hashtext('signalbox.roll_up_metrics'));

-- clear: the periods that are about to be counted anew
-- Not an upsert: an attempt's start moves once it is known, so that a minute may be left with nothing.
DELETE FROM signalbox.job_metrics
WHERE period = %(period)s AND starts_at >= date_trunc(%(period)s, %(since)s::timestamptz, 'UTC') AND starts_at < %(until)s;

-- count_minutes: the minutes of a stretch of time, from the attempts
-- By executions_by_time, which knows starts: an attempt that ended in the stretch began in it, or not long before,
-- even if it was lost and taken back late.
WITH seen AS MATERIALIZED (
    SELECT moment.starts_at, x.job_type, x.lane, moment.has_ended, x.status, x.duration_ms, x.memory_used_mb, x.cpu_time_ms,
        x.status IN ('completed', 'failed', 'timeout', 'continued') AS has_run,
        -- The wait of one that was given back is not over.
        CASE WHEN x.status <> 'released'
            THEN greatest(0, extract(epoch FROM x.started_at - x.queued_at) * 1000)::bigint END AS waited_ms
    FROM signalbox.job_executions AS x
    CROSS JOIN LATERAL (VALUES
        (date_trunc('minute', x.started_at), false), (date_trunc('minute', x.completed_at), true)
    ) AS moment (starts_at, has_ended)
    WHERE x.started_at >= %(since)s::timestamptz - %(longest)s AND x.started_at < %(until)s
        AND moment.starts_at >= %(since)s AND moment.starts_at < %(until)s
), counted AS (
    SELECT starts_at, job_type, lane,
        count(*) FILTER (WHERE NOT has_ended) AS begun,
        count(*) FILTER (WHERE has_ended AND status = 'completed') AS completed,
        count(*) FILTER (WHERE has_ended AND status = 'failed') AS failed,
        count(*) FILTER (WHERE has_ended AND status = 'timeout') AS timed_out,
        count(*) FILTER (WHERE has_ended AND status = 'cancelled') AS cancelled,
        count(*) FILTER (WHERE has_ended AND status NOT IN ('completed', 'failed', 'timeout', 'cancelled')) AS others,
        coalesce(sum(duration_ms) FILTER (WHERE has_ended AND has_run), 0) AS total_ms,
        coalesce(max(duration_ms) FILTER (WHERE has_ended AND has_run), 0) AS most_ms,
        coalesce(sum(waited_ms) FILTER (WHERE has_ended), 0) AS waited_ms,
        max(memory_used_mb) FILTER (WHERE has_ended) AS most_memory_mb,
        coalesce(sum(cpu_time_ms) FILTER (WHERE has_ended), 0) AS cpu_ms
    FROM seen
    GROUP BY starts_at, job_type, lane
), spread AS (
    SELECT starts_at, job_type, lane, bucket, count(*) FILTER (WHERE of_durations) AS durations,
        count(*) FILTER (WHERE NOT of_durations) AS waits
    FROM (
        SELECT starts_at, job_type, lane, of_durations,
            greatest(1, width_bucket(milliseconds::float8, %(bounds)s::float8[])) AS bucket
        FROM seen CROSS JOIN LATERAL (VALUES
            (CASE WHEN has_run THEN duration_ms END, true), (waited_ms, false)
        ) AS measured (milliseconds, of_durations)
        WHERE has_ended AND milliseconds IS NOT NULL
    ) AS placed
    GROUP BY starts_at, job_type, lane, bucket
), histograms AS (
    SELECT c.starts_at, c.job_type, c.lane,
        array_agg(coalesce(s.durations, 0)::integer ORDER BY b.bucket) AS durations,
        array_agg(coalesce(s.waits, 0)::integer ORDER BY b.bucket) AS waits
    FROM counted AS c CROSS JOIN generate_series(1, cardinality(%(bounds)s::float8[])) AS b (bucket)
    LEFT JOIN spread AS s USING (starts_at, job_type, lane, bucket)
    GROUP BY c.starts_at, c.job_type, c.lane
)
INSERT INTO signalbox.job_metrics (
    period, starts_at, job_type, lane, begun, completed, failed, timed_out, cancelled, others, total_ms, most_ms,
    waited_ms, durations, waits, most_memory_mb, cpu_ms
)
SELECT 'minute', starts_at, job_type, lane, begun, completed, failed, timed_out, cancelled, others, total_ms, most_ms,
    waited_ms, durations, waits, most_memory_mb, cpu_ms
FROM counted JOIN histograms USING (starts_at, job_type, lane);

-- add_up: longer periods, from the shorter ones that they are made of
WITH parts AS MATERIALIZED (
    SELECT date_trunc(%(period)s, m.starts_at, 'UTC') AS longer, m.*
    FROM signalbox.job_metrics AS m
    -- To the end of the last period, though the stretch ends in the middle of it.
    WHERE m.period = %(shorter)s AND m.starts_at >= date_trunc(%(period)s, %(since)s::timestamptz, 'UTC')
        AND m.starts_at < date_trunc(%(period)s, %(until)s::timestamptz - interval '1 us', 'UTC') + %(length)s
), counted AS (
    SELECT longer, job_type, lane, sum(begun) AS begun, sum(completed) AS completed, sum(failed) AS failed,
        sum(timed_out) AS timed_out, sum(cancelled) AS cancelled, sum(others) AS others, sum(total_ms) AS total_ms,
        max(most_ms) AS most_ms, sum(waited_ms) AS waited_ms, max(most_memory_mb) AS most_memory_mb, sum(cpu_ms) AS cpu_ms
    FROM parts
    GROUP BY longer, job_type, lane
), spread AS (
    SELECT longer, job_type, lane, bucket, sum(of_bucket.durations) AS durations, sum(of_bucket.waits) AS waits
    FROM parts CROSS JOIN LATERAL unnest(parts.durations, parts.waits) WITH ORDINALITY AS of_bucket (durations, waits, bucket)
    GROUP BY longer, job_type, lane, bucket
), histograms AS (
    SELECT longer, job_type, lane, array_agg(durations::integer ORDER BY bucket) AS durations,
        array_agg(waits::integer ORDER BY bucket) AS waits
    FROM spread
    GROUP BY longer, job_type, lane
)
INSERT INTO signalbox.job_metrics (
    period, starts_at, job_type, lane, begun, completed, failed, timed_out, cancelled, others, total_ms, most_ms,
    waited_ms, durations, waits, most_memory_mb, cpu_ms
)
SELECT %(period)s, longer, job_type, lane, begun, completed, failed, timed_out, cancelled, others, total_ms, most_ms,
    waited_ms, durations, waits, most_memory_mb, cpu_ms
FROM counted JOIN histograms USING (longer, job_type, lane);

-- count_connections: to the whole server, and how many it takes of those that are not superusers
SELECT coalesce(sum(numbackends), 0)::integer,
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
FROM pg_stat_database;
