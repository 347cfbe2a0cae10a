-- read_due: what a message says of these jobs, of those that may begin
SELECT id::text, job_type, lane, tenant FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status IN ('pending', 'queued') AND unmet_dependencies = 0
    AND (scheduled_for IS NULL OR scheduled_for <= now() + interval '1 s');

-- read_changes: what an event says of these jobs
SELECT id::text, job_type, lane, tenant, status, attempts FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status <> 'running';

-- read_fallen: the same of those that what they waited for has taken along
SELECT id::text, job_type, lane, tenant, status, attempts FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status IN ('failed', 'cancelled');

-- read_held: of the jobs that a claim did not get, those that it has paused, or put off for a cap
-- By the time: what a message came for too early, or twice, has been waiting for longer.
SELECT id::text, job_type, lane, tenant, status, attempts FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status IN ('pending', 'paused') AND updated_at >= now() - interval '5 s';
