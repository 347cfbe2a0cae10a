-- next_held: return the jobs that these caps and rates hold and that may begin, with the time until then
-- A rate's next job is sent ahead of its time. Where a cap has no room, the worker that ends one of its jobs begins the
-- next.
SELECT h.id::text, h.job_type, h.lane, h.tenant, w.wait * interval '1 s'
FROM (
    SELECT n.name, greatest(0, coalesce(extract(epoch FROM c.next_at - clock_timestamp()), 0)) AS wait,
        CASE WHEN c.paused THEN 0 WHEN c.rate IS NULL THEN signalbox.room_of(c)
            ELSE least(signalbox.room_under_cap(c), greatest(1, signalbox.room_of(c))) END AS room
    FROM unnest(%(caps)s::text[]) AS n (name)
    LEFT JOIN signalbox.job_caps AS c
        ON c.kind = split_part(n.name, ':', 1) AND c.key = substr(n.name, strpos(n.name, ':') + 1)
    OFFSET 0
) AS w
CROSS JOIN LATERAL (
    SELECT j.id, j.job_type, j.lane, j.tenant FROM signalbox.jobs AS j WHERE j.held_by = w.name
    ORDER BY j.priority, j.id LIMIT least(w.room, %(most)s)
) AS h;

-- list_holding: return the caps and rates that hold jobs, with one index lookup each
WITH RECURSIVE holding (name) AS (
    (SELECT held_by FROM signalbox.jobs WHERE held_by IS NOT NULL ORDER BY held_by LIMIT 1)
    UNION ALL
    SELECT (SELECT j.held_by FROM signalbox.jobs AS j WHERE j.held_by > h.name ORDER BY j.held_by LIMIT 1)
    FROM holding AS h WHERE h.name IS NOT NULL
)
SELECT name FROM holding WHERE name IS NOT NULL;

-- release: release a batch of jobs whose cap and rate are gone
WITH free AS (
    SELECT id FROM signalbox.jobs AS j
    WHERE held_by = %(cap)s AND NOT EXISTS (
        SELECT FROM signalbox.job_caps AS c
        WHERE c.kind = split_part(%(cap)s, ':', 1) AND c.key = substr(%(cap)s, strpos(%(cap)s, ':') + 1)
            AND (c.max_running IS NOT NULL OR c.rate IS NOT NULL)
    )
    ORDER BY priority, id LIMIT %(batch)s FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE signalbox.jobs AS j SET held_by = NULL, held_since = NULL, send_at = clock_timestamp(), updated_at = clock_timestamp()
FROM free WHERE j.id = free.id
RETURNING j.id::text;
