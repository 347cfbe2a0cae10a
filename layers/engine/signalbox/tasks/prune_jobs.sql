-- delete_jobs: delete from a page of jobs, in the order of their ids, those that ended long ago, with their attempts
-- Ids sort by time, so the primary key leads to the old ones. Only the times decide what is deleted, since an id may be
-- made in another way. Attempts of ids beyond `partitioned` go with their partition.
WITH page AS MATERIALIZED (
    SELECT id FROM signalbox.jobs WHERE id > %(after)s::uuid AND id < %(until)s::uuid ORDER BY id LIMIT %(batch)s
), doomed AS MATERIALIZED (
    SELECT j.id FROM page JOIN signalbox.jobs AS j ON j.id = page.id
    WHERE j.completed_at < %(before)s AND (
        j.status IN ('completed', 'cancelled')
        -- A failed job stays as long as it may still be redriven.
        OR (j.status = 'failed' AND NOT EXISTS (
            SELECT FROM signalbox.dead_letter_jobs AS d
            WHERE d.original_job_id = j.id AND d.status NOT IN ('resolved', 'ignored')
        ))
    ) AND NOT EXISTS (
        SELECT FROM signalbox.job_dependencies AS d WHERE d.depends_on_job_id = j.id AND NOT d.satisfied
    )
    FOR UPDATE OF j SKIP LOCKED
), gone AS (
    DELETE FROM signalbox.jobs AS j USING doomed WHERE j.id = doomed.id
    RETURNING j.id, CASE WHEN %(archive)s
        THEN jsonb_build_object('table', 'jobs', 'row', jsonb_strip_nulls(to_jsonb(j)))::text END AS line
), attempts AS (
    DELETE FROM signalbox.job_executions AS x USING gone WHERE x.job_id = gone.id AND gone.id < %(partitioned)s::uuid
    RETURNING x.job_id, CASE WHEN %(archive)s
        THEN jsonb_build_object('table', 'job_executions', 'row', jsonb_strip_nulls(to_jsonb(x)))::text END AS line
)
SELECT (SELECT id::text FROM page ORDER BY id DESC LIMIT 1), (SELECT count(*) FROM page),
    (SELECT count(*) FROM gone) + (SELECT count(*) FROM attempts), (SELECT id::text FROM gone ORDER BY id LIMIT 1),
    ARRAY(SELECT line FROM (SELECT * FROM gone UNION ALL SELECT * FROM attempts) AS rows WHERE line IS NOT NULL ORDER BY id);

-- delete_executions: delete from a page of attempts those that ended long ago, though their jobs are kept
WITH page AS MATERIALIZED (
    SELECT job_id, attempt_number, completed_at FROM signalbox.job_executions
    WHERE (job_id, attempt_number) > (%(after)s::uuid, %(number)s) AND job_id < %(until)s::uuid
    ORDER BY job_id, attempt_number
    LIMIT %(batch)s
), gone AS (
    DELETE FROM signalbox.job_executions AS x USING page
    WHERE x.job_id = page.job_id AND x.attempt_number = page.attempt_number AND page.completed_at < %(before)s
    RETURNING x.job_id, x.attempt_number, CASE WHEN %(archive)s
        THEN jsonb_build_object('table', 'job_executions', 'row', jsonb_strip_nulls(to_jsonb(x)))::text END AS line
), last AS (
    SELECT job_id, attempt_number FROM page ORDER BY job_id DESC, attempt_number DESC LIMIT 1
)
SELECT (SELECT job_id::text FROM last), (SELECT attempt_number FROM last), (SELECT count(*) FROM page),
    (SELECT count(*) FROM gone),
    (SELECT job_id || '-' || attempt_number FROM gone ORDER BY job_id, attempt_number LIMIT 1),
    ARRAY(SELECT line FROM gone WHERE line IS NOT NULL ORDER BY job_id, attempt_number);

-- delete_groups: delete a batch of groups that ended long ago, or were never sealed and have no jobs left
DELETE FROM signalbox.job_groups
WHERE id IN (
    SELECT g.id FROM signalbox.job_groups AS g
    WHERE g.finished_at < %(before)s OR (
        g.finished_at IS NULL AND g.created_at < %(before)s AND g.completion_job_id IS NULL
        AND NOT EXISTS (SELECT FROM signalbox.jobs AS j WHERE j.job_group = g.id)
    )
    LIMIT %(batch)s
    FOR UPDATE OF g SKIP LOCKED
);

-- delete_signals: delete one batch of old signals that no job waits for
DELETE FROM signalbox.signals
WHERE key IN (
    SELECT s.key FROM signalbox.signals AS s
    WHERE coalesce(s.sent_at, s.created_at) < %(before)s
        AND NOT EXISTS (SELECT FROM signalbox.job_waits AS w WHERE w.key = s.key AND w.ended_by IS NULL)
    LIMIT %(batch)s
);

-- delete_notifications: delete a batch of old notifications
DELETE FROM signalbox.notifications
WHERE id IN (SELECT n.id FROM signalbox.notifications AS n WHERE n.created_at < %(before)s LIMIT %(batch)s);

-- delete_audit: delete those of a batch of the audit log's oldest rows that are past its retention
-- Ids are in the order of time: no index by time is needed.
WITH page AS MATERIALIZED (
    SELECT id, at FROM signalbox.audit_log ORDER BY id LIMIT %(batch)s
), gone AS (
    DELETE FROM signalbox.audit_log AS a USING page WHERE a.id = page.id AND page.at < %(before)s
    RETURNING a.id, jsonb_build_object('table', 'audit_log', 'row', to_jsonb(a))::text AS line
)
SELECT (SELECT count(*) FROM gone), (SELECT min(id)::text FROM gone), ARRAY(SELECT line FROM gone ORDER BY id);

-- delete_metrics: delete a batch of a period's figures, by whole longer periods, which are added up from them
DELETE FROM signalbox.job_metrics
WHERE period = %(period)s AND (starts_at, job_type, lane) IN (
    SELECT m.starts_at, m.job_type, m.lane FROM signalbox.job_metrics AS m
    WHERE m.period = %(period)s AND m.starts_at < date_trunc(%(longer)s::text, %(before)s::timestamptz, 'UTC')
    ORDER BY m.starts_at
    LIMIT %(batch)s
);
