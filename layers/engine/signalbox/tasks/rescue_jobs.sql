-- list_lost: a batch of the running jobs whose lease has run out, by the clock that gave it
-- What somebody has locked is at work just now.
SELECT id::text, job_type, lane, tenant, attempts, max_attempts, worker_id, lease_token::text,
    cancel_requested_at IS NOT NULL AS unwanted
FROM signalbox.jobs
WHERE status = 'running' AND lease_expires_at <= clock_timestamp() AND id > %(after)s::uuid
ORDER BY id
LIMIT %(batch)s
FOR NO KEY UPDATE SKIP LOCKED;

-- find_silent: the seconds until the last lease has run out of those that were not renewed of late
SELECT extract(epoch FROM max(lease_expires_at) - clock_timestamp()) FROM signalbox.jobs
WHERE status = 'running' AND lease_expires_at > clock_timestamp() AND lease_expires_at <= clock_timestamp() + %(within)s;

-- end: their attempts, if the leases are still the ones that ran out
-- No lock beforehand: of a worker that finishes after all, another rescuer and this one, the first to change the job
-- takes the token from it, and the others find none of theirs.
-- A worker that was frozen may have renewed its own since they were listed.
SELECT id::text, status, follows FROM signalbox.end_attempts((
    SELECT coalesce(jsonb_agg(e), '[]') FROM jsonb_array_elements(%(ends)s::jsonb) AS e
    JOIN signalbox.jobs AS j ON j.id = (e ->> 'id')::uuid WHERE j.lease_expires_at <= clock_timestamp()
)) WHERE id IS NOT NULL;
