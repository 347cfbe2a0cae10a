-- hold_parents: those of these jobs that there are; none of them can end before this transaction does
-- Else one could end unseen between our look at it and the commit, and nobody would ever release the job.
SELECT id::text FROM signalbox.jobs WHERE id = ANY (%(parents)s::uuid[]) ORDER BY id FOR SHARE;

-- insert_dependencies: what the new jobs wait for
INSERT INTO signalbox.job_dependencies (job_id, depends_on_job_id, dependency_type, on_failure)
SELECT job_id, depends_on_job_id, dependency_type, on_failure
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
    job_id uuid, depends_on_job_id uuid, dependency_type text, on_failure text
);

-- recount: where two of a job's parents turned out to be the same one
UPDATE signalbox.jobs AS j
SET unmet_dependencies = (SELECT count(*) FROM signalbox.job_dependencies WHERE job_id = j.id)
WHERE id = ANY (%(ids)s::uuid[]);

-- settle: what of the new jobs need not wait, or never will be done, since its parents have ended
SELECT signalbox.settle_jobs(ARRAY(
    SELECT id FROM signalbox.jobs WHERE id = ANY (%(parents)s::uuid[]) AND completed_at IS NOT NULL
), counted => true);

-- queue_released: the new jobs that need not wait after all, to be sent like any other
UPDATE signalbox.jobs
SET status = 'queued', queued_at = clock_timestamp(), send_at = clock_timestamp() + %(lost_after)s,
    updated_at = clock_timestamp()
WHERE id = ANY (%(ids)s::uuid[]) AND status = 'pending' AND unmet_dependencies = 0 AND send_at <= clock_timestamp();

-- read_states: what has become of the new jobs that wait
SELECT id::text, status FROM signalbox.jobs WHERE id = ANY (%(ids)s::uuid[]);
