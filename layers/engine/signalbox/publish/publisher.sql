-- read_due: return what a message says, for those of these jobs that may begin
SELECT id::text, job_type, lane, tenant FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status IN ('pending', 'queued') AND unmet_dependencies = 0
    AND (scheduled_for IS NULL OR scheduled_for <= now() + interval '1 s');

-- read_changes: return what an event says of these jobs
SELECT id::text, job_type, lane, tenant, status, attempts FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status <> 'running';

-- read_fallen: return the same for dependents that failed or were cancelled with the job they waited for
SELECT id::text, job_type, lane, tenant, status, attempts FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status IN ('failed', 'cancelled');

-- read_held: return the jobs that a claim has paused, or put off for a cap
-- The time tells them apart: a job whose message came too early, or twice, has been waiting for longer.
SELECT id::text, job_type, lane, tenant, status, attempts FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status IN ('pending', 'paused') AND updated_at >= now() - interval '5 s';
