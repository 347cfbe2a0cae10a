-- retry_now: make jobs due at once
UPDATE signalbox.jobs AS j
SET scheduled_for = t.now, send_at = t.now + %(wait)s, updated_at = t.now
FROM (SELECT clock_timestamp() AS now OFFSET 0) AS t
WHERE j.id = ANY (%(ids)s::uuid[]) AND j.unmet_dependencies = 0 AND j.scheduled_for > t.now
RETURNING j.id::text;

-- find: return why a single job may not be tried now
SELECT status, unmet_dependencies, scheduled_for > clock_timestamp() AS waits, (
        SELECT d.id::text FROM signalbox.dead_letter_jobs AS d WHERE d.original_job_id = j.id
    ) AS dead_letter_id
FROM signalbox.jobs AS j WHERE id = %(id)s;
