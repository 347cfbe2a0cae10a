-- read_changes: what an event says of these jobs
SELECT id::text, job_type, lane, tenant, status, attempts FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status <> 'running';
