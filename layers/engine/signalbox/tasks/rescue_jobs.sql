-- list_lost: return a batch of running jobs whose lease has run out, by the database's clock, which gave it
-- A locked job is being worked on.
SELECT id::text, job_type, lane, tenant, attempts, max_attempts, worker_id, lease_token::text,
    cancel_requested_at IS NOT NULL AS unwanted,
    (SELECT n.notes FROM signalbox.job_notes AS n WHERE n.job_id = j.id AND n.lease_token = j.lease_token)
FROM signalbox.jobs AS j
WHERE status = 'running' AND lease_expires_at <= clock_timestamp() AND id > %(after)s::uuid
ORDER BY id
LIMIT %(batch)s
FOR NO KEY UPDATE SKIP LOCKED;

-- find_silent: return the seconds until the last of the leases that were not renewed lately runs out
SELECT extract(epoch FROM max(lease_expires_at) - clock_timestamp()) FROM signalbox.jobs
WHERE status = 'running' AND lease_expires_at > clock_timestamp() AND lease_expires_at <= clock_timestamp() + %(within)s;

-- end: end their attempts, if the leases are still the ones that ran out
-- This locks nothing beforehand. A worker that finishes after all and another rescuer may do the same: the first to
-- change the job takes the token from it, and the others no longer match. A worker that was frozen may have renewed its
-- lease since.
SELECT id::text, status, follows FROM signalbox.end_attempts((
    SELECT coalesce(jsonb_agg(e), '[]') FROM jsonb_array_elements(%(ends)s::jsonb) AS e
    JOIN signalbox.jobs AS j ON j.id = (e ->> 'id')::uuid WHERE j.lease_expires_at <= clock_timestamp()
)) WHERE id IS NOT NULL;
