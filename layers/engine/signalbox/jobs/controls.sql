-- list_controls: everything that is paused or capped, with how much of it runs and how much is held
SELECT c.kind, c.key, c.paused, c.max_running, c.rate, c.per_seconds, c.reason, c.changed_by, c.changed_at,
    coalesce(n.running, 0) AS running, coalesce(n.held, 0) AS held
FROM signalbox.job_controls AS c
LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE j.status = 'running') AS running,
        count(*) FILTER (WHERE j.status = 'paused') AS held
    FROM signalbox.jobs AS j
    WHERE j.status IN ('running', 'paused') AND c.key = CASE c.kind
        WHEN 'type' THEN j.job_type WHEN 'lane' THEN j.lane WHEN 'tenant' THEN j.tenant ELSE j.cap_key END
) AS n ON true
ORDER BY c.kind, c.key;

-- find: one of them
SELECT paused, max_running, rate, per_seconds FROM signalbox.job_controls WHERE kind = %(kind)s AND key = %(key)s;

-- pause: no claim takes a job of it from now on
INSERT INTO signalbox.job_controls AS c (kind, key, paused, reason, changed_by, changed_at)
VALUES (%(kind)s, %(key)s, true, %(reason)s, %(by)s, clock_timestamp())
ON CONFLICT (kind, key) DO UPDATE
SET paused = true, reason = excluded.reason, changed_by = excluded.changed_by, changed_at = excluded.changed_at;

-- resume: claims take its jobs again
UPDATE signalbox.job_controls SET paused = false, reason = %(reason)s, changed_by = %(by)s, changed_at = clock_timestamp()
WHERE kind = %(kind)s AND key = %(key)s AND paused
RETURNING key;

-- cap: at most so many at once, at most so many begun in a time; NULL lifts
INSERT INTO signalbox.job_controls AS c (kind, key, max_running, rate, per_seconds, reason, changed_by, changed_at)
VALUES (%(kind)s, %(key)s, %(max_running)s, %(rate)s, %(per_seconds)s, %(reason)s, %(by)s, clock_timestamp())
ON CONFLICT (kind, key) DO UPDATE
SET max_running = excluded.max_running, rate = excluded.rate, per_seconds = excluded.per_seconds,
    -- A new rate begins with a full bucket; the old one's tokens are of another size.
    tokens = CASE WHEN (c.rate, c.per_seconds) IS NOT DISTINCT FROM (excluded.rate, excluded.per_seconds) THEN c.tokens END,
    refilled_at = CASE WHEN (c.rate, c.per_seconds) IS NOT DISTINCT FROM (excluded.rate, excluded.per_seconds)
        THEN c.refilled_at END,
    reason = excluded.reason, changed_by = excluded.changed_by, changed_at = excluded.changed_at;

-- forget: what neither pauses nor caps anything is none; each claim reads them all
DELETE FROM signalbox.job_controls
WHERE kind = %(kind)s AND key = %(key)s AND NOT paused AND max_running IS NULL AND rate IS NULL;
