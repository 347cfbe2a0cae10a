-- list: return a page of the matching dead letters, the newest failure first, without their payloads
SELECT id::text, source, original_job_id::text, job_type, failure_reason, error_type,
    left(final_error_message, 300) AS error_message, total_attempts, fingerprint, severity, status, tenant, redrives,
    resolution_notes, resolved_by, resolved_at, redriven_at, reopened_at, notified_at, first_failed_at, last_failed_at,
    version, regressed_at
FROM signalbox.dead_letter_jobs
WHERE (%(before_at)s::timestamptz IS NULL OR (last_failed_at, id) < (%(before_at)s, %(before_id)s::uuid))
    AND
    -- include: dead_letter_filter.matches
ORDER BY last_failed_at DESC, dead_letter_jobs.id DESC
LIMIT %(limit)s;

-- show: return one dead letter whole, with the state of its job
SELECT d.*, j.status AS job_status FROM signalbox.dead_letter_jobs AS d
LEFT JOIN signalbox.jobs AS j ON j.id = d.original_job_id
WHERE d.id = %(id)s::uuid;

-- list_executions: return all executions of its job, later ones included
SELECT x.attempt_number, x.status, x.worker_id, x.started_at, x.completed_at, x.duration_ms, x.error_code,
    x.error_message, x.error_stack, x.memory_used_mb
FROM signalbox.dead_letter_jobs AS d JOIN signalbox.attempts AS x ON x.job_id = d.original_job_id
WHERE d.id = %(id)s::uuid
ORDER BY x.attempt_number;

-- list_audit: return what operators have done about it
SELECT at, actor, action, detail FROM signalbox.audit_log
WHERE entity_type = 'dead_letter' AND entity_id = %(id)s
ORDER BY id;

-- count_some: count the matching dead letters in these states, up to a number
SELECT count(*) FROM (
    SELECT FROM signalbox.dead_letter_jobs
    WHERE status = ANY (%(sources)s::text[]) AND
        -- include: dead_letter_filter.matches
    LIMIT %(most)s
) AS counted;

-- lock: lock the dead letters to triage, in one order: two operators, or one and a redrive, can't deadlock
SELECT id::text, status FROM signalbox.dead_letter_jobs
WHERE
    -- include: dead_letter_filter.matches
ORDER BY id
FOR UPDATE;

-- triage: set what was decided, and record in the audit log who did it and why
WITH changed AS (
    UPDATE signalbox.dead_letter_jobs AS d
    SET status = %(status)s, resolved_by = %(by)s, resolution_notes = coalesce(%(reason)s, d.resolution_notes),
        resolved_at = CASE WHEN %(status)s IN ('resolved', 'ignored') THEN clock_timestamp() END,
        regressed_at = CASE WHEN %(status)s <> 'resolved' THEN d.regressed_at END, updated_at = clock_timestamp()
    FROM (SELECT id, status FROM signalbox.dead_letter_jobs WHERE id = ANY (%(ids)s::uuid[])) AS before
    WHERE d.id = before.id
    RETURNING d.id, before.status AS was, d.original_job_id AS job_id
)
INSERT INTO signalbox.audit_log (actor, action, entity_type, entity_id, detail)
SELECT %(by)s, 'dead_letter.' || CASE %(status)s WHEN 'pending' THEN 'reopened' ELSE %(status)s END, 'dead_letter', id::text,
    jsonb_strip_nulls(jsonb_build_object('was', was, 'reason', %(reason)s::text, 'job_id', job_id))
FROM changed ORDER BY id;
