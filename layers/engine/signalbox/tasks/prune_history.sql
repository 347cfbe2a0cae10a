-- list_job_types: every task the ledger has rows of, by jumping along the index instead of reading the table
WITH RECURSIVE jump AS (
    (SELECT job_type FROM signalbox.job_history ORDER BY job_type LIMIT 1)
    UNION ALL
    SELECT (SELECT h.job_type FROM signalbox.job_history AS h WHERE h.job_type > jump.job_type ORDER BY h.job_type LIMIT 1)
    FROM jump WHERE jump.job_type IS NOT NULL
)
SELECT job_type FROM jump WHERE job_type IS NOT NULL;

-- delete_runs: one batch of a task's oldest rows; SKIP LOCKED, so that two prunings share the work
DELETE FROM signalbox.job_history
WHERE id IN (
    SELECT id FROM signalbox.job_history
    WHERE job_type = %(job_type)s AND started_at < %(before)s AND status <> 'running'
    ORDER BY started_at
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
);

-- delete_backfills: finished ones, with their slots
DELETE FROM signalbox.backfills WHERE finished_at < %(before)s;
