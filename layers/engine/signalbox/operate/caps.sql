-- list_caps: return everything that is paused or capped, with its running and held jobs
-- The jobs are counted once for all caps.
WITH at_work AS (
    SELECT named.kind, named.key, count(*) FILTER (WHERE j.status = 'running') AS running,
        count(*) FILTER (WHERE j.status = 'paused') AS paused
    FROM signalbox.jobs AS j
    CROSS JOIN LATERAL (
        VALUES ('type', j.job_type), ('lane', j.lane), ('tenant', j.tenant), ('key', j.cap_key)
    ) AS named (kind, key)
    WHERE j.status IN ('running', 'paused')
    GROUP BY named.kind, named.key
), held AS (
    SELECT held_by, count(*) AS number FROM signalbox.jobs WHERE held_by IS NOT NULL GROUP BY held_by
)
SELECT c.kind, c.key, c.paused, c.max_running, c.rate, c.per_seconds, c.reason, c.changed_by, c.changed_at,
    coalesce(n.running, 0) AS running, coalesce(n.paused, 0) + coalesce(h.number, 0) AS held
FROM signalbox.job_caps AS c
LEFT JOIN at_work AS n ON n.kind = c.kind AND n.key = c.key
LEFT JOIN held AS h ON h.held_by = c.kind || ':' || c.key
-- Of the caps that types declare, which may be one for each of many receivers, only those that hold jobs.
WHERE NOT c.by_default OR h.number IS NOT NULL
ORDER BY c.kind, c.key;

-- find: return one cap
SELECT paused, max_running, rate, per_seconds FROM signalbox.job_caps WHERE kind = %(kind)s AND key = %(key)s;

-- pause: let no claim take its jobs from now on
INSERT INTO signalbox.job_caps AS c (kind, key, paused, reason, changed_by, changed_at)
VALUES (%(kind)s, %(key)s, true, %(reason)s, %(by)s, clock_timestamp())
ON CONFLICT (kind, key) DO UPDATE
SET paused = true, reason = excluded.reason, changed_by = excluded.changed_by, changed_at = excluded.changed_at;

-- resume: let claims take its jobs again
UPDATE signalbox.job_caps SET paused = false, reason = %(reason)s, changed_by = %(by)s, changed_at = clock_timestamp()
WHERE kind = %(kind)s AND key = %(key)s AND paused
RETURNING key;

-- cap: limit how many run at once, and how many begin in a time; NULL lifts a limit
INSERT INTO signalbox.job_caps AS c (kind, key, max_running, rate, per_seconds, reason, changed_by, changed_at)
VALUES (%(kind)s, %(key)s, %(max_running)s, %(rate)s, %(per_seconds)s, %(reason)s, %(by)s, clock_timestamp())
ON CONFLICT (kind, key) DO UPDATE
SET max_running = excluded.max_running, rate = excluded.rate, per_seconds = excluded.per_seconds, by_default = false,
    -- The next place in time of another rate may be far away.
    next_at = CASE WHEN (c.rate, c.per_seconds) IS NOT DISTINCT FROM (excluded.rate, excluded.per_seconds) THEN c.next_at END,
    reason = excluded.reason, changed_by = excluded.changed_by, changed_at = excluded.changed_at;

-- forget: delete a row that neither pauses nor caps anything, since each claim reads them all
DELETE FROM signalbox.job_caps
WHERE kind = %(kind)s AND key = %(key)s AND NOT paused AND max_running IS NULL AND rate IS NULL;
