-- mark: mark running jobs that have been silent for long, or whose lease has run out
-- A job has no heartbeat in its first seconds: then its start counts. The index jobs_watched finds the jobs. A locked
-- job is being worked on, and heartbeats lock many jobs in their own order: SKIP LOCKED avoids both.
WITH silent AS MATERIALIZED (
    SELECT id, CASE WHEN lease_expires_at <= clock_timestamp() THEN 'FAILED' ELSE 'STALE' END AS health
    FROM signalbox.jobs
    WHERE status = 'running' AND (
        (lease_expires_at <= clock_timestamp() AND health_status IS DISTINCT FROM 'FAILED')
        OR (coalesce(heartbeat_at, started_at) < clock_timestamp() - %(patience)s
            AND coalesce(health_status, 'HEALTHY') = 'HEALTHY')
    )
    ORDER BY id
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
)
UPDATE signalbox.jobs AS j SET health_status = silent.health, updated_at = clock_timestamp()
FROM silent
WHERE j.id = silent.id
RETURNING j.id::text, j.job_type, j.worker_id, j.health_status;
