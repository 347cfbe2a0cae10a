-- pause: pause jobs until somebody resumes them
UPDATE signalbox.jobs SET status = 'paused', paused_by = %(by)s, send_at = NULL, held_by = NULL, updated_at = clock_timestamp()
WHERE id = ANY (%(ids)s::uuid[]);

-- resume: resume jobs, unless a pause of their type, lane, tenant or key still holds them
UPDATE signalbox.jobs AS j
SET status = CASE WHEN judged.held THEN 'paused' ELSE 'pending' END, paused_by = NULL, held_since = NULL,
    send_at = CASE WHEN NOT judged.held AND j.unmet_dependencies = 0
        THEN greatest(j.scheduled_for, judged.now + %(wait)s) END,
    updated_at = judged.now
FROM (
    SELECT p.id, clock_timestamp() AS now, EXISTS (
        SELECT FROM signalbox.job_caps AS c WHERE c.paused AND c.key = CASE c.kind
            WHEN 'type' THEN p.job_type WHEN 'lane' THEN p.lane WHEN 'tenant' THEN p.tenant ELSE p.cap_key END
    ) AS held
    FROM signalbox.jobs AS p WHERE p.id = ANY (%(ids)s::uuid[]) OFFSET 0
) AS judged
WHERE j.id = judged.id AND (NOT judged.held OR j.paused_by IS NOT NULL)
    -- Ending a pause of many jobs does not end one of this job alone.
    AND (%(own)s OR j.paused_by IS NULL)
RETURNING j.id::text, judged.held,
    j.unmet_dependencies = 0 AND (j.scheduled_for IS NULL OR j.scheduled_for <= judged.now) AS due;
