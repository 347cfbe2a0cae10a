-- find_rolled_up: return up to when the figures are complete: the last complete run, or the newest minute
SELECT greatest(
    (SELECT max(reference_time) FROM signalbox.job_history
        WHERE job_type = 'roll_up_metrics' AND status = 'succeeded' AND NOT more AND reference_time < %(until)s),
    (SELECT max(starts_at) FROM signalbox.job_metrics WHERE period = 'minute' AND starts_at < %(until)s)
);

-- hold: let one roll-up run at a time; a second one waits, and then sees at least what the first has seen
SELECT pg_advisory_xact_lock(hashtextextended('signalbox.roll_up_metrics', 0));

-- clear: delete the periods that are about to be counted again
-- Not an upsert: an attempt's start moves once it is known, so that a minute may become empty.
DELETE FROM signalbox.job_metrics
WHERE period = %(period)s AND starts_at >= date_trunc(%(period)s, %(since)s::timestamptz, 'UTC') AND starts_at < %(until)s;

-- count_minutes: count the minutes of a period from the attempts
INSERT INTO signalbox.job_metrics (
    period, starts_at, job_type, lane, begun, completed, failed, timed_out, cancelled, throttled, others, total_ms, most_ms,
    waited_ms, durations, waits, most_memory_mb, cpu_ms
)
SELECT 'minute', * FROM signalbox.count_attempts(%(since)s, %(until)s, %(bounds)s::float8[], %(longest)s);

-- add_up: add up longer periods from the shorter ones that they are made of
WITH parts AS MATERIALIZED (
    SELECT date_trunc(%(period)s, m.starts_at, 'UTC') AS longer, m.*
    FROM signalbox.job_metrics AS m
    -- Up to the end of the last period, even if the given time ends in the middle of it.
    WHERE m.period = %(shorter)s AND m.starts_at >= date_trunc(%(period)s, %(since)s::timestamptz, 'UTC')
        AND m.starts_at < date_trunc(%(period)s, %(until)s::timestamptz - interval '1 us', 'UTC') + %(length)s
), counted AS (
    SELECT longer, job_type, lane, sum(begun) AS begun, sum(completed) AS completed, sum(failed) AS failed,
        sum(timed_out) AS timed_out, sum(cancelled) AS cancelled,
        sum(throttled) AS throttled, sum(others) AS others, sum(total_ms) AS total_ms,
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
    period, starts_at, job_type, lane, begun, completed, failed, timed_out, cancelled, throttled, others, total_ms, most_ms,
    waited_ms, durations, waits, most_memory_mb, cpu_ms
)
SELECT %(period)s, longer, job_type, lane, begun, completed, failed, timed_out, cancelled, throttled, others, total_ms, most_ms,
    waited_ms, durations, waits, most_memory_mb, cpu_ms
FROM counted JOIN histograms USING (longer, job_type, lane);

-- count_connections: count the connections to the whole server, and how many it allows to non-superusers
SELECT coalesce(sum(numbackends), 0)::integer,
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
FROM pg_stat_database;

-- keep_estimates: keep how long jobs of each type take, where that has changed by more than a fifth
UPDATE signalbox.job_type_options AS t SET estimated_duration = e.value::float8 * interval '1 ms'
FROM jsonb_each_text(%(ms)s) AS e
WHERE t.name = e.key AND (
    t.estimated_duration IS NULL
    OR abs(extract(epoch FROM t.estimated_duration) * 1000 - e.value::float8) > e.value::float8 / 5
);
