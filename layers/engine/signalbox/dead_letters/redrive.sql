-- pick: return the next dead letters that match, the oldest failure first: parents before their children
SELECT id::text, source, last_failed_at FROM signalbox.dead_letter_jobs
WHERE (%(after_at)s::timestamptz IS NULL OR (last_failed_at, id) > (%(after_at)s, %(after_id)s::uuid))
    AND
    -- include: dead_letter_filter.matches
ORDER BY last_failed_at, dead_letter_jobs.id
LIMIT %(limit)s;

-- preview: what decides about the next ones, in one statement
SELECT
    -- include: candidate.columns
FROM (
    SELECT * FROM signalbox.dead_letter_jobs
    WHERE
    -- include: dead_letter_filter.matches
    ORDER BY last_failed_at, dead_letter_jobs.id
    LIMIT %(limit)s
) AS l
LEFT JOIN signalbox.jobs AS j ON j.id = coalesce(l.original_job_id, (l.metadata ->> 'job_id')::uuid)
ORDER BY l.last_failed_at, l.id;

-- read_clock: return the database's time, which last_failed_at uses
SELECT clock_timestamp();
