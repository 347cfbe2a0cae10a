-- insert: store the jobs, and only the first of each idempotency key
-- This waits for another transaction that is about to store a job with the key.
INSERT INTO signalbox.jobs (
    id, job_type, job_name, job_category, lane, priority, status, payload, payload_version, tenant, cap_key, subject_id,
    correlation_id, idempotency_key, job_group, parent_job_id, schedule_id, unmet_dependencies, tags, metadata, created_by,
    max_attempts, timeout_ms, scheduled_for, send_at, queued_at, estimated_duration
)
SELECT id, job_type, job_name, job_category, lane, priority, status, payload, payload_version, tenant, cap_key, subject_id,
    correlation_id, idempotency_key, job_group, parent_job_id, schedule_id, unmet_dependencies, tags, metadata, created_by,
    max_attempts, timeout_ms, scheduled_for, send_at, queued_at,
    (SELECT t.estimated_duration FROM signalbox.job_type_options AS t WHERE t.name = given.job_type)
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
    id uuid, job_type text, job_name text, job_category text, lane text, priority smallint, status text, payload jsonb,
    payload_version smallint, tenant text, cap_key text, subject_id text, correlation_id text, idempotency_key text,
    job_group text, parent_job_id uuid, schedule_id uuid, unmet_dependencies integer, tags text[], metadata jsonb,
    created_by text, max_attempts smallint, timeout_ms integer, scheduled_for timestamptz, send_at timestamptz,
    queued_at timestamptz
)
ON CONFLICT (job_type, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING id::text;

-- replace: store a job, or replace the one of its tenant with its replace key that has not begun
-- A job that is in its lane stays there, and has no time of its own any more.
INSERT INTO signalbox.jobs (
    id, job_type, job_name, job_category, lane, priority, status, payload, payload_version, tenant, cap_key, subject_id,
    correlation_id, idempotency_key, job_group, parent_job_id, schedule_id, unmet_dependencies, tags, metadata, created_by,
    max_attempts, timeout_ms, scheduled_for, send_at, queued_at, replace_key, estimated_duration
)
SELECT id, job_type, job_name, job_category, lane, priority, status, payload, payload_version, tenant, cap_key, subject_id,
    correlation_id, idempotency_key, job_group, parent_job_id, schedule_id, unmet_dependencies, tags, metadata, created_by,
    max_attempts, timeout_ms, scheduled_for, send_at, queued_at, replace_key,
    (SELECT t.estimated_duration FROM signalbox.job_type_options AS t WHERE t.name = given.job_type)
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
    id uuid, job_type text, job_name text, job_category text, lane text, priority smallint, status text, payload jsonb,
    payload_version smallint, tenant text, cap_key text, subject_id text, correlation_id text, idempotency_key text,
    job_group text, parent_job_id uuid, schedule_id uuid, unmet_dependencies integer, tags text[], metadata jsonb,
    created_by text, max_attempts smallint, timeout_ms integer, scheduled_for timestamptz, send_at timestamptz,
    queued_at timestamptz, replace_key text
)
ON CONFLICT (job_type, replace_key, coalesce(tenant, ''))
    WHERE replace_key IS NOT NULL AND executions = 0 AND status IN ('pending', 'queued', 'paused') DO UPDATE
SET payload = excluded.payload, payload_version = excluded.payload_version, subject_id = excluded.subject_id,
    correlation_id = excluded.correlation_id, job_name = excluded.job_name, job_category = excluded.job_category,
    tags = excluded.tags, metadata = excluded.metadata, created_by = excluded.created_by, updated_at = clock_timestamp(),
    lane = CASE WHEN jobs.status = 'queued' THEN jobs.lane ELSE excluded.lane END,
    timeout_ms = CASE WHEN jobs.status = 'queued' THEN jobs.timeout_ms ELSE excluded.timeout_ms END,
    cap_key = CASE WHEN jobs.held_by IS NULL THEN excluded.cap_key ELSE jobs.cap_key END,
    scheduled_for = CASE WHEN jobs.status = 'queued' THEN jobs.scheduled_for
        ELSE coalesce(excluded.scheduled_for, jobs.scheduled_for) END,
    send_at = CASE WHEN jobs.status = 'pending' AND jobs.send_at IS NOT NULL AND excluded.scheduled_for IS NOT NULL
        THEN excluded.send_at ELSE jobs.send_at END
RETURNING id::text, status, xmax = 0;

-- copy: store many jobs without idempotency keys
COPY signalbox.jobs (
    id, payload, idempotency_key, subject_id, correlation_id, tenant,
    job_type, job_name, job_category, lane, priority, status, payload_version, cap_key, job_group, parent_job_id,
    schedule_id, unmet_dependencies, tags, metadata, created_by, max_attempts, timeout_ms, scheduled_for, send_at, queued_at,
    estimated_duration
) FROM STDIN;

-- copy_aside: put many jobs with idempotency keys where this transaction alone sees them
COPY signalbox.job_rows (
    id, payload, idempotency_key, subject_id, correlation_id, tenant,
    job_type, job_name, job_category, lane, priority, status, payload_version, cap_key, job_group, parent_job_id,
    schedule_id, unmet_dependencies, tags, metadata, created_by, max_attempts, timeout_ms, scheduled_for, send_at, queued_at,
    estimated_duration
) FROM STDIN;

-- take_aside: store them, and only the first of each key, in the order of the keys, as insert does
INSERT INTO signalbox.jobs (
    id, payload, idempotency_key, subject_id, correlation_id,
    job_type, job_name, job_category, lane, priority, status, payload_version, tenant, cap_key, job_group, parent_job_id,
    schedule_id, unmet_dependencies, tags, metadata, created_by, max_attempts, timeout_ms, scheduled_for, send_at, queued_at,
    estimated_duration
)
SELECT
    id, payload, idempotency_key, subject_id, correlation_id,
    job_type, job_name, job_category, lane, priority, status, payload_version, tenant, cap_key, job_group, parent_job_id,
    schedule_id, unmet_dependencies, tags, metadata, created_by, max_attempts, timeout_ms, scheduled_for, send_at, queued_at,
    estimated_duration
FROM signalbox.job_rows ORDER BY coalesce(idempotency_key, '') COLLATE "C", job_type COLLATE "C", id
ON CONFLICT (job_type, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING id::text;

-- clear_aside: remove them
DELETE FROM signalbox.job_rows;

-- find_estimates: return how long jobs of these types take
SELECT name, estimated_duration::text FROM signalbox.job_type_options WHERE name = ANY (%(types)s) AND estimated_duration IS NOT NULL;

-- find_first: return the jobs that were submitted with these keys before
SELECT given.id, first.id::text, first.status
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (id text, job_type text, idempotency_key text)
JOIN signalbox.jobs AS first USING (job_type, idempotency_key);

-- find_sealed: return those of these groups that take no further jobs
SELECT id FROM signalbox.job_groups WHERE id = ANY (%(groups)s) AND sealed ORDER BY id;

-- leave: leave work for the commit
INSERT INTO signalbox.job_submits (parents, groups, caps) VALUES (%(parents)s::uuid[], %(groups)s::jsonb, %(caps)s::jsonb);

-- find_undeclared: return those of these types' caps that have no row yet
SELECT kind, key FROM jsonb_to_recordset(%(caps)s::jsonb) AS r (kind text, key text)
WHERE NOT EXISTS (SELECT FROM signalbox.job_caps AS c WHERE c.kind = r.kind AND c.key = r.key);
