-- claim: take the leases of those of these jobs that are queued, and open an attempt each
SELECT id::text, job_type, lane, priority, payload, payload_version, config, cursor, tenant, job_group, correlation_id,
    attempt, execution, max_attempts, timeout_ms, queued_at, created_at, cancel_requested_at, throttles, throttled_since,
    pieces, first_started_at
FROM signalbox.claim_jobs(%(ids)s::uuid[], %(token)s, %(worker_id)s, %(node)s, %(lease)s);

-- find_claimed: those that are under the token, which an earlier claim may have taken whose answer was lost
SELECT id::text, job_type, lane, priority, payload, payload_version, config, cursor, tenant, job_group, correlation_id,
    attempts, executions, max_attempts, timeout_ms, queued_at, created_at, cancel_requested_at, throttles, throttled_since,
    pieces, first_started_at
FROM signalbox.jobs WHERE id = ANY (%(ids)s::uuid[]) AND status = 'running' AND lease_token = %(token)s;

-- finish: end attempts as their verdicts say; whose lease is another's by now is left alone
SELECT id::text, status, follows FROM signalbox.end_attempts(%(token)s, %(verdicts)s::jsonb);

-- complete: end one job that has completed, and commit the transaction at once; refused where its lease is another's
SELECT coalesce(
    signalbox.complete_job(
        %(token)s, %(job)s, %(number)s, %(began_ms)s, %(ended_ms)s, %(cpu_ms)s, %(memory_mb)s, %(result)s,
        %(output_files)s
    ),
    signalbox.refuse_lost_lease(%(job)s)
)::text[];
COMMIT;
