-- find_faults: what must never be, with the job or group it is about
SELECT 'has ' || j.executions || ' executions, of which ' || x.ended || ' have ended' AS what, j.id::text
FROM signalbox.jobs AS j
CROSS JOIN LATERAL (SELECT count(*) AS ended FROM signalbox.job_executions AS x WHERE x.job_id = j.id) AS x
WHERE x.ended <> j.executions - (j.status = 'running')::integer
UNION ALL
SELECT 'has begun before its time', j.id::text FROM signalbox.jobs AS j
-- dispatch_jobs goes by its own clock, which may be two seconds ahead.
WHERE j.status = 'running' AND j.started_at < j.scheduled_for - interval '3 s'
UNION ALL
SELECT 'is charged ' || j.attempts || ' attempts and not ' || c.charged || ', or has completed in ' || c.completed, j.id::text
FROM signalbox.jobs AS j LEFT JOIN (
    SELECT x.job_id, count(*) FILTER (WHERE x.status = 'completed') AS completed, count(*) FILTER (
        WHERE x.status IN ('started', 'completed', 'failed', 'timeout', 'cancelled', 'lost')
            AND x.attempt_number > x.last_piece
            AND (d.redriven_at IS NULL OR x.started_at >= d.redriven_at)
    ) AS charged
    FROM (
        SELECT *, coalesce(max(attempt_number) FILTER (WHERE status = 'continued') OVER (PARTITION BY job_id), 0) AS last_piece
        FROM signalbox.attempts
    ) AS x
    LEFT JOIN signalbox.dead_letter_jobs AS d ON d.original_job_id = x.job_id
    GROUP BY x.job_id
) AS c ON c.job_id = j.id
WHERE j.attempts <> coalesce(c.charged, 0) OR coalesce(c.completed, 0) <> (j.status = 'completed')::integer
UNION ALL
SELECT 'has failed without one open dead letter, or has one without', j.id::text FROM signalbox.jobs AS j
WHERE (j.status = 'failed')::integer <> (
    SELECT count(*) FROM signalbox.dead_letter_jobs AS d WHERE d.original_job_id = j.id AND d.status <> 'redriven'
)
UNION ALL
SELECT 'waits for the signal ' || w.key || ', which was sent', j.id::text
FROM signalbox.job_waits AS w JOIN signalbox.jobs AS j ON j.id = w.job_id JOIN signalbox.signals AS s ON s.key = w.key
WHERE w.ended_by IS NULL AND s.sent_at IS NOT NULL AND j.status = 'pending' AND j.scheduled_for = w.until
    AND w.until > now() + interval '1 s'
UNION ALL
SELECT 'is ' || j.status || ', and its code has had ' || e.effects || ' effects', j.id::text
FROM signalbox.jobs AS j
CROSS JOIN LATERAL (SELECT count(*) AS effects FROM sim.effects AS e WHERE e.job_id = j.id) AS e
WHERE e.effects <> (j.status = 'completed' AND j.job_type = 'paid')::integer
UNION ALL
SELECT 'waits for ' || j.unmet_dependencies || ' others and not ' || u.unmet, j.id::text
FROM signalbox.jobs AS j CROSS JOIN LATERAL (
    SELECT (SELECT count(*) FROM signalbox.job_dependencies AS d WHERE d.job_id = j.id AND NOT d.satisfied)
        + (SELECT count(*) FROM signalbox.job_groups AS g WHERE g.completion_job_id = j.id AND g.finished_at IS NULL) AS unmet
) AS u
WHERE j.completed_at IS NULL AND j.unmet_dependencies <> u.unmet
    -- What a group has begun as it ended goes on where a redrive opens the group again.
    AND NOT (j.unmet_dependencies < u.unmet AND EXISTS (
        SELECT FROM signalbox.job_groups AS g JOIN signalbox.jobs AS m ON m.job_group = g.id
        JOIN signalbox.dead_letter_jobs AS d ON d.original_job_id = m.id
        WHERE g.completion_job_id = j.id AND d.redriven_at IS NOT NULL
    ))
UNION ALL
SELECT 'counts ' || g.completed || ', ' || g.failed || ' and ' || g.cancelled || ' of ' || g.total, g.id
FROM signalbox.job_groups AS g CROSS JOIN LATERAL (
    SELECT count(*) AS total, count(*) FILTER (WHERE j.status = 'completed') AS completed,
        count(*) FILTER (WHERE j.status = 'failed') AS failed, count(*) FILTER (WHERE j.status = 'cancelled') AS cancelled
    FROM signalbox.jobs AS j WHERE j.job_group = g.id
) AS n
WHERE (g.total, g.completed, g.failed, g.cancelled) <> (n.total, n.completed, n.failed, n.cancelled)
    OR (g.finished_at IS NOT NULL) <> (g.sealed AND n.completed + n.failed + n.cancelled = n.total)
UNION ALL
SELECT 'has begun ' || b.begun || ' jobs in ' || t.seconds || ' s', c.kind || ':' || c.key
FROM signalbox.job_caps AS c
CROSS JOIN LATERAL (SELECT least(60, extract(epoch FROM now() - c.changed_at)) AS seconds) AS t
CROSS JOIN LATERAL (
    SELECT count(*) AS begun FROM signalbox.attempts AS x JOIN signalbox.jobs AS j ON j.id = x.job_id
    WHERE x.started_at > now() - t.seconds * interval '1 s'
        AND c.kind || ':' || c.key IN ('type:' || j.job_type, 'lane:' || j.lane, 'tenant:' || j.tenant, 'key:' || j.cap_key)
) AS b
-- A worker that looks a moment late may use the places of the last quarter of a second.
WHERE c.rate > 0 AND b.begun > 1 + (t.seconds + 0.25) * c.rate / c.per_seconds;

-- list_controls: caps, rates and pauses that jobs run or wait under: how many run and are held, the lane of the next of these,
-- and whether it could begin
SELECT n.name, k.max_running, n.running, n.held, n.lane,
    NOT coalesce(k.paused, false) AND n.running + n.kept < coalesce(k.max_running, n.running + n.kept + 1)
        AND coalesce(k.next_at <= now() - interval '1 s', true) AS has_room
FROM (
    SELECT c.name, count(*) FILTER (WHERE j.status = 'running') AS running, count(*) FILTER (WHERE j.held_by = c.name) AS held,
        (array_agg(j.lane ORDER BY j.priority, j.id) FILTER (WHERE j.held_by = c.name))[1] AS lane,
        count(*) FILTER (WHERE j.status = 'pending' AND j.held_by IS NULL) AS kept  -- places for suspects
    FROM signalbox.jobs AS j
    CROSS JOIN unnest(ARRAY['type:' || job_type, 'lane:' || lane, 'tenant:' || tenant, 'key:' || cap_key]) AS c (name)
    WHERE j.status = 'running' OR j.held_by IS NOT NULL OR (j.status = 'pending' AND j.held_since IS NOT NULL)
    GROUP BY c.name
) AS n
LEFT JOIN signalbox.job_caps AS k ON k.kind || ':' || k.key = n.name
ORDER BY n.name;

-- list_states: of the jobs that a later transaction has written: where each is, whether its last worker died with it, its lease
SELECT xmin::text::bigint, id::text, status, coalesce(error_details ->> 'type' = 'WorkerLost', false), worker_id, lease_token::text,
    extract(epoch FROM lease_expires_at - now())::float8 + %(now)s
FROM signalbox.jobs WHERE xmin::text::bigint > %(written_by)s ORDER BY id;

-- list_executions: all that was ever begun for a worker
SELECT x.job_id::text, x.lease_token::text, x.status, x.worker_id, j.result ->> 'token'
FROM signalbox.job_executions AS x JOIN signalbox.jobs AS j ON j.id = x.job_id
UNION ALL
SELECT id::text, lease_token::text, 'started', worker_id, NULL FROM signalbox.jobs WHERE status = 'running';
