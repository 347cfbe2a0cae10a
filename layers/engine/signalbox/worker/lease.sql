-- claim: begin those of these jobs that are queued
SELECT id::text, job_type, lane, priority, payload, payload_version, config, cursor, tenant, job_group, correlation_id,
    attempt, execution, max_attempts, timeout_ms, queued_at, created_at, cancel_requested_at, throttles, throttled_since,
    pieces, first_started_at, cap_key, capped
FROM signalbox.claim_jobs(
    %(ids)s::uuid[], %(token)s, %(worker_id)s, %(node)s, %(lease)s, %(longest_ms)s, %(suspects)s, %(caps)s, %(places)s,
    %(lanes)s
);

-- find_claimed: return the jobs under the token, which a claim may have begun whose answer was lost
SELECT id::text, job_type, lane, priority, payload, payload_version, config, cursor, tenant, job_group, correlation_id,
    attempts, executions, max_attempts, timeout_ms, queued_at, created_at, cancel_requested_at, throttles, throttled_since,
    pieces, first_started_at, cap_key, true
FROM signalbox.jobs WHERE status = 'running' AND lease_token = %(token)s;

-- find_free: return those of these jobs that are not locked; these locks end with the statement
SELECT id::text FROM signalbox.jobs WHERE id = ANY (%(ids)s::uuid[]) FOR NO KEY UPDATE SKIP LOCKED;

-- hold: hold those of these jobs that a cap, a rate or a pause keeps from beginning
SELECT signalbox.hold_jobs(%(ids)s::uuid[]);

-- find_left: return the unclaimed jobs that wait, whether their last worker died with them, and what holds them
SELECT id::text, coalesce(error_details ->> 'type' = 'WorkerLost', false), held_by FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND (status = 'queued' OR held_by IS NOT NULL);

-- find_due: return a lane's next queued jobs with late messages: by priority, tenants in turn, the oldest first
SELECT id::text, job_type, suspect
FROM (
    SELECT *, row_number() OVER (PARTITION BY priority, tenant ORDER BY send_at) AS turn
    FROM signalbox.late_jobs(%(lane)s, %(late)s, %(lost_after)s, 10 * %(most)s)
) AS due
ORDER BY priority, turn, send_at LIMIT %(most)s;

-- find_held: return the caps that hold jobs, the seconds until one may begin, and whether it is short enough
SELECT cap, seconds, fits FROM signalbox.find_held(%(caps)s, %(lanes)s, %(longest_ms)s);

-- renew: renew leases and heartbeats; return the jobs that are still this worker's, and whether to cancel them
-- A locked row is left for the next time: waiting for it would let the other leases run out.
WITH mine AS MATERIALIZED (
    SELECT j.id, b.token, b.percent, b.message, b.notes
    FROM jsonb_to_recordset(%(beats)s::jsonb) AS b (id uuid, token uuid, percent smallint, message text, notes jsonb)
    JOIN signalbox.jobs AS j ON j.id = b.id AND j.lease_token = b.token
    FOR NO KEY UPDATE OF j SKIP LOCKED
), noted AS (
    INSERT INTO signalbox.job_notes AS known (job_id, lease_token, notes)
    SELECT id, token, notes FROM mine WHERE notes IS NOT NULL
    ON CONFLICT (job_id) DO UPDATE SET lease_token = excluded.lease_token, notes = excluded.notes
    WHERE (known.lease_token, known.notes) IS DISTINCT FROM (excluded.lease_token, excluded.notes)
)
UPDATE signalbox.jobs AS j
SET lease_expires_at = clock_timestamp() + %(lease)s, heartbeat_at = clock_timestamp(), health_status = 'HEALTHY',
    updated_at = clock_timestamp(), progress_percent = coalesce(mine.percent, j.progress_percent),
    progress_message = coalesce(mine.message, j.progress_message)
FROM mine WHERE j.id = mine.id
RETURNING j.id::text, j.cancel_requested_at IS NOT NULL;

-- finish: end attempts as their verdicts say, except those whose lease another worker has by now
SELECT coalesce(id::text, ''), status, follows FROM signalbox.end_attempts(%(ends)s::jsonb);

-- finish_waiting: do the same where some wait for signals
SELECT coalesce(id::text, ''), status, follows FROM signalbox.end_waiting(%(ends)s::jsonb);

-- keep_files: keep what is known of the files that these jobs have written
INSERT INTO signalbox.job_files AS known (job_id, key, sha256, bytes, content_type, kept_until)
SELECT DISTINCT ON (e.id, f.key) e.id, f.key, f.sha256, f.bytes, f.content_type, f.kept_until
FROM jsonb_to_recordset(%(ends)s::jsonb) AS e (id uuid, files jsonb)
CROSS JOIN LATERAL jsonb_to_recordset(e.files) AS f (
    key text, sha256 text, bytes bigint, content_type text, kept_until timestamptz
)
WHERE e.id = ANY (%(ids)s::uuid[])
ON CONFLICT (job_id, key) DO UPDATE
SET sha256 = excluded.sha256, bytes = excluded.bytes, content_type = excluded.content_type, kept_until = excluded.kept_until,
    written_at = clock_timestamp();

-- complete: end one completed job, and commit the transaction at once; refuse if another worker has its lease
SELECT coalesce(
    signalbox.complete_job(
        %(token)s, %(job)s, %(began_ms)s, %(ended_ms)s, %(cpu_ms)s, %(memory_mb)s, %(result)s,
        %(output_files)s
    ),
    signalbox.refuse_lost_lease(%(job)s)
)::text[];
COMMIT;
