-- lock_jobs: lock their jobs, and the jobs that these still wait for, so that none of them ends in between
SELECT FROM signalbox.jobs
WHERE id IN (
    SELECT coalesce(l.original_job_id, (l.metadata ->> 'job_id')::uuid) FROM signalbox.dead_letter_jobs AS l
    WHERE l.id = ANY (%(ids)s::uuid[])
    UNION
    SELECT d.depends_on_job_id FROM signalbox.dead_letter_jobs AS l
    JOIN signalbox.job_dependencies AS d ON d.job_id = l.original_job_id AND NOT d.satisfied
    WHERE l.id = ANY (%(ids)s::uuid[])
)
ORDER BY id
FOR NO KEY UPDATE;

-- lock_letters: lock the dead letters; another redrive or a triage waits here
SELECT FROM signalbox.dead_letter_jobs WHERE id = ANY (%(ids)s::uuid[]) ORDER BY id FOR UPDATE;

-- read: return what decides whether each can be redriven, in the order of Candidate
SELECT
    -- include: candidate.columns
FROM signalbox.dead_letter_jobs AS l
LEFT JOIN signalbox.jobs AS j ON j.id = coalesce(l.original_job_id, (l.metadata ->> 'job_id')::uuid)
WHERE l.id = ANY (%(ids)s::uuid[]);

-- restart: set failed jobs back to pending with all their attempts; with an edited payload without their cursor
-- A job whose parents have been restarted waits for them again. So does a group's completion job for its group.
UPDATE signalbox.jobs AS j
SET status = 'pending', attempts = 0, sends = 0, throttles = 0, throttled_since = NULL, pieces = 0,
    first_started_at = NULL, completed_at = NULL, actual_duration = NULL, queued_at = NULL, cancel_requested_at = NULL,
    progress_percent = 0, progress_message = NULL, scheduled_for = r.at, unmet_dependencies = r.unmet,
    send_at = CASE WHEN r.unmet = 0 THEN r.at END,
    payload = coalesce(r.payload, j.payload), payload_version = coalesce(r.version, j.payload_version),
    cursor = CASE WHEN r.payload IS NULL THEN j.cursor END,
    subject_id = CASE WHEN r.payload IS NULL THEN j.subject_id ELSE r.subject END,
    -- Only a correlation id that came from the payload: the submitter may have given another.
    correlation_id = CASE WHEN j.correlation_id = j.payload ->> r.correlation_field
        THEN r.correlation ELSE j.correlation_id END,
    updated_at = clock_timestamp()
FROM (
    SELECT given.*, (
        SELECT count(*) FROM signalbox.job_dependencies AS d WHERE d.job_id = given.id AND NOT d.satisfied
    ) + (
        SELECT count(*) FROM signalbox.job_groups AS g WHERE g.completion_job_id = given.id AND g.finished_at IS NULL
    ) AS unmet
    FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
        id uuid, at timestamptz, payload jsonb, version smallint, subject text, correlation_field text,
        correlation text
    )
) AS r
-- No condition on the status, which is known by now: the planner would choose an index for it.
WHERE j.id = r.id;

-- begin_anew: forget the steps and the wait of jobs that get another payload
WITH steps AS (DELETE FROM signalbox.job_steps WHERE job_id = ANY (%(jobs)s::uuid[]))
DELETE FROM signalbox.job_waits WHERE job_id = ANY (%(jobs)s::uuid[]);

-- lock_groups: lock the groups of the jobs and those that completion jobs await; after the jobs, in the order of resolve_dependents
SELECT FROM signalbox.job_groups
WHERE id = ANY (%(groups)s::text[]) OR completion_job_id = ANY (%(jobs)s::uuid[])
ORDER BY id
FOR NO KEY UPDATE;

-- uncount: take these jobs, which have not ended, out of their groups' counts, and open the groups again
UPDATE signalbox.job_groups AS g SET failed = g.failed - n.count, finished_at = NULL
FROM (
    SELECT j.job_group, count(*) FROM signalbox.jobs AS j
    JOIN jsonb_to_recordset(%(rows)s::jsonb) AS r (id uuid) ON r.id = j.id
    WHERE j.job_group IS NOT NULL GROUP BY j.job_group
) AS n
WHERE g.id = n.job_group;

-- send_again: let dispatch_jobs send these waiting jobs without further delay
UPDATE signalbox.jobs AS j SET send_at = greatest(r.at, j.scheduled_for), updated_at = clock_timestamp()
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (id uuid, at timestamptz)
WHERE j.id = r.id AND (j.status = 'queued' OR (j.status = 'pending' AND j.unmet_dependencies = 0));

-- mark_redriven: mark the dead letters as redriven; record who did it, why, and for when in the audit log
WITH changed AS (
    UPDATE signalbox.dead_letter_jobs AS l
    SET status = 'redriven', redrives = l.redrives + 1, redriven_at = clock_timestamp(), resolved_at = NULL,
        resolved_by = %(by)s, resolution_notes = coalesce(%(reason)s, l.resolution_notes), updated_at = clock_timestamp()
    FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (id uuid, at timestamptz)
    WHERE l.id = r.id
    RETURNING l.id, l.original_job_id, r.at
)
INSERT INTO signalbox.audit_log (actor, action, entity_type, entity_id, detail)
SELECT %(by)s, 'dead_letter.redriven', 'dead_letter', id::text, jsonb_strip_nulls(jsonb_build_object(
    'reason', %(reason)s::text, 'job_id', original_job_id, 'scheduled_for', at, 'payload_edited', %(edited)s::boolean
))
FROM changed ORDER BY at, id;
