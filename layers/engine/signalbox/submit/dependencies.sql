-- insert_dependencies: store what the new jobs wait for; return whether each parent has ended already, as needed
INSERT INTO signalbox.job_dependencies (
    job_id, depends_on_job_id, dependency_type, on_failure, satisfied, satisfied_at
)
SELECT job_id, depends_on_job_id, dependency_type, on_failure, may_go, CASE WHEN may_go THEN clock_timestamp() END
FROM (
    SELECT given.*, p.completed_at IS NOT NULL
        AND (p.status = 'completed' OR dependency_type = 'completion' OR on_failure = 'proceed') AS may_go
    FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
        job_id uuid, depends_on_job_id uuid, dependency_type text, on_failure text
    )
    JOIN signalbox.jobs AS p ON p.id = depends_on_job_id
) AS judged
RETURNING depends_on_job_id::text, satisfied;

-- count_unmet: update the new jobs that need not wait for all that they name; queue those that need not wait at all
UPDATE signalbox.jobs AS j
SET unmet_dependencies = d.unmet, status = CASE WHEN due THEN 'queued' ELSE status END,
    queued_at = CASE WHEN due THEN clock_timestamp() END,
    send_at = CASE WHEN due THEN clock_timestamp() + %(lost_after)s WHEN d.unmet = 0 THEN scheduled_for END
FROM (
    SELECT w.job_id, w.unmet, w.unmet = 0 AND coalesce(p.scheduled_for, clock_timestamp()) <= clock_timestamp() AS due
    FROM (
        SELECT job_id, count(*) FILTER (WHERE NOT satisfied) AS unmet FROM signalbox.job_dependencies
        WHERE job_id = ANY (%(ids)s::uuid[]) GROUP BY job_id
    ) AS w
    JOIN signalbox.jobs AS p ON p.id = w.job_id
) AS d
WHERE j.id = d.job_id AND j.unmet_dependencies <> d.unmet
RETURNING j.id::text, j.status;

-- queue_released: queue those of these jobs that need not wait any more, to be sent like any other
UPDATE signalbox.jobs
SET status = 'queued', queued_at = clock_timestamp(), send_at = clock_timestamp() + %(lost_after)s,
    updated_at = clock_timestamp()
WHERE id = ANY (%(ids)s::uuid[]) AND status = 'pending' AND unmet_dependencies = 0 AND send_at <= clock_timestamp();

-- read_states: return their states
SELECT id::text, status FROM signalbox.jobs WHERE id = ANY (%(ids)s::uuid[]);
