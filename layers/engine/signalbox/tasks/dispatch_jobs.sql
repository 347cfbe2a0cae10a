-- list_overdue_lanes: return the lanes with a job whose message should have been taken by now
SELECT lane FROM unnest('{high,normal,low,heavy}'::text[]) AS l (lane) WHERE EXISTS (
    SELECT FROM signalbox.jobs AS j
    WHERE j.lane = l.lane AND j.priority = ANY ('{1,2,3,4,5,6,7,8,9,10}') AND j.status = 'queued'
        AND j.send_at <= greatest(%(now)s, now())
);

-- find_late: return the first jobs of each lane that have been queued this long: their messages may be lost
SELECT w.id::text, w.job_type, l.lane, w.tenant
FROM unnest('{high,normal,low,heavy}'::text[]) AS l (lane)
CROSS JOIN LATERAL (
    SELECT * FROM signalbox.late_jobs(l.lane, %(late)s, %(lost_after)s, %(most)s) ORDER BY priority, send_at LIMIT %(most)s
) AS w;

-- take_due: take a batch of due jobs: queue those that waited for their time, check those that were sent before
-- Here and below the time is the later of the run's time and the clock: a rule may fire most of a minute late. The
-- order is send_at, from where the last batch ended, so that the jobs of a lane that is down are passed once a run.
-- Each lane and priority uses jobs_to_send. SKIP LOCKED lets two dispatchers share the work, and neither waits for a
-- worker.
WITH due AS MATERIALIZED (
    SELECT j.id, j.status, j.send_at,
        -- In a lane that holds messages this one may still be there: the job gets more and more time, then a second
        -- message.
        j.status = 'pending' OR j.lane = ANY (%(empty)s) OR (j.sends >= %(patience)s AND %(may_repeat)s) AS goes
    FROM (
        SELECT w.id FROM unnest('{high,normal,low,heavy}'::text[]) AS l (lane)
        CROSS JOIN generate_series(1, 10) AS p (priority)
        CROSS JOIN LATERAL (
            SELECT k.id, k.send_at FROM signalbox.jobs AS k
            WHERE k.lane = l.lane AND k.priority = p.priority
                AND k.send_at >= %(after)s AND k.send_at <= greatest(%(now)s, now())
            ORDER BY k.send_at LIMIT %(batch)s
        ) AS w
        WHERE l.lane <> ALL (%(down)s)
        ORDER BY w.send_at LIMIT %(batch)s
    ) AS first
    JOIN signalbox.jobs AS j ON j.id = first.id
    WHERE j.send_at >= %(after)s AND j.send_at <= greatest(%(now)s, now())
    FOR UPDATE OF j SKIP LOCKED
)
UPDATE signalbox.jobs AS j
SET status = 'queued', updated_at = now(),
    queued_at = CASE WHEN due.status = 'pending' THEN now() ELSE j.queued_at END,
    send_at = greatest(%(now)s, now()) + CASE WHEN due.status = 'pending' THEN %(lost_after)s
        ELSE least(15, 2 ^ least(j.sends, 4)) * interval '1 min' END,
    sends = least(j.sends + 1, 1000)  -- far from the column's limit, however long no worker takes it
FROM due
WHERE j.id = due.id
RETURNING j.id::text, j.job_type, j.lane, j.tenant, interval '0' AS delay, due.send_at, due.goes, due.status = 'queued' AS again,
    j.cap_key IS NULL AND j.job_type = ANY (%(keyed)s) AS unkeyed;

-- take_soon: take a batch of jobs due within a minute, before the next run; they wait in their lane
-- A job whose message already has a delay, as a retry's has, is checked two minutes after its time: not here.
WITH soon AS MATERIALIZED (
    SELECT j.id, j.send_at
    FROM (
        SELECT w.id FROM unnest('{high,normal,low,heavy}'::text[]) AS l (lane)
        CROSS JOIN generate_series(1, 10) AS p (priority)
        CROSS JOIN LATERAL (
            SELECT k.id, k.send_at FROM signalbox.jobs AS k
            WHERE k.lane = l.lane AND k.priority = p.priority
                AND k.send_at >= %(after)s AND k.send_at > greatest(%(now)s, now())
                AND k.send_at <= greatest(%(now)s, now()) + interval '1 min'
                AND k.status = 'pending' AND k.scheduled_for > k.send_at - interval '1 min'
            ORDER BY k.send_at LIMIT %(batch)s
        ) AS w
        WHERE l.lane <> ALL (%(down)s)
        ORDER BY w.send_at LIMIT %(batch)s
    ) AS first
    JOIN signalbox.jobs AS j ON j.id = first.id
    WHERE j.status = 'pending' AND j.send_at >= %(after)s
    FOR UPDATE OF j SKIP LOCKED
)
UPDATE signalbox.jobs AS j
SET send_at = j.scheduled_for + %(lost_after)s, sends = least(j.sends + 1, 1000), updated_at = now()
FROM soon
WHERE j.id = soon.id
RETURNING j.id::text, j.job_type, j.lane, j.tenant,
    j.scheduled_for - greatest(%(now)s, now()) AS delay, soon.send_at, true AS goes,
    false AS again, j.cap_key IS NULL AND j.job_type = ANY (%(keyed)s) AS unkeyed;

-- read_unkeyed: return the jobs whose type counts them by a key that only its code can make
SELECT id::text, job_type, tenant, payload, payload_version FROM signalbox.jobs WHERE id = ANY (%(ids)s::uuid[]);

-- set_cap_keys: store the keys that were made; no worker has a message of these jobs yet
UPDATE signalbox.jobs AS j SET cap_key = k.cap_key, updated_at = clock_timestamp()
FROM jsonb_to_recordset(%(keys)s::jsonb) AS k (id uuid, cap_key text) WHERE j.id = k.id AND j.cap_key IS NULL;
