-- list_overdue_lanes: the lanes in which a job waits whose message should have been taken by now
SELECT DISTINCT lane FROM signalbox.jobs WHERE status = 'queued' AND send_at <= greatest(%(now)s, now());

-- take_due: a batch of those that are due: what waited for its time is queued, what was sent before is looked after
-- The later of the run's time and the clock, here and below: a rule may fire most of a minute after its time.
-- In the order of jobs_to_send and from where the last batch ended, so that what a lane that is down leaves behind is
-- passed by once a run; SKIP LOCKED, so that two dispatchers share the work and neither waits for a worker.
WITH due AS MATERIALIZED (
    SELECT id, status, send_at,
        -- A message may still be somewhere in a lane that holds any: it gets longer and longer, then a second one.
        status = 'pending' OR lane = ANY (%(empty)s) OR (sends >= %(patience)s AND %(may_repeat)s) AS goes
    FROM signalbox.jobs
    WHERE send_at >= %(after)s AND send_at <= greatest(%(now)s, now()) AND lane <> ALL (%(down)s)
    ORDER BY send_at
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
)
UPDATE signalbox.jobs AS j
SET status = 'queued', updated_at = now(),
    queued_at = CASE WHEN due.status = 'pending' THEN now() ELSE j.queued_at END,
    send_at = greatest(%(now)s, now()) + CASE WHEN due.status = 'pending' THEN interval '2 min'
        ELSE least(15, 2 ^ least(j.sends, 4)) * interval '1 min' END,
    sends = least(j.sends + 1, 1000)  -- far from the column's end, however long nobody takes it
FROM due
WHERE j.id = due.id
RETURNING j.id::text, j.job_type, j.lane, j.tenant, 0 AS delay, due.send_at, due.goes, due.status = 'queued' AS again;

-- take_soon: a batch of those that are due within a minute, before the next run; they wait in their lane for it
-- One whose message is on its way with a delay, as a retry's is, is looked for two minutes after its time: not here.
WITH soon AS MATERIALIZED (
    SELECT id, send_at FROM signalbox.jobs
    WHERE send_at >= %(after)s AND send_at > greatest(%(now)s, now())
        AND send_at <= greatest(%(now)s, now()) + interval '1 min'
        AND status = 'pending' AND scheduled_for > send_at - interval '1 min' AND lane <> ALL (%(down)s)
    ORDER BY send_at
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
)
UPDATE signalbox.jobs AS j
SET send_at = j.scheduled_for + interval '2 min', sends = least(j.sends + 1, 1000), updated_at = now()
FROM soon
WHERE j.id = soon.id
RETURNING j.id::text, j.job_type, j.lane, j.tenant,
    -- Rounded up: a message that comes early is for nothing.
    ceil(extract(epoch FROM j.scheduled_for - greatest(%(now)s, now())))::integer AS delay, soon.send_at, true AS goes,
    false AS again;
