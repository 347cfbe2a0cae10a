-- list_runs: return a page of the ledger by the filters given, newest first
SELECT id, job_type, slot, reference_time, trigger, status, items, more, step, reason, error, worker_id, started_at,
    finished_at, duration_ms
FROM signalbox.job_history
WHERE (%(before_id)s::bigint IS NULL OR id < %(before_id)s)
    AND (%(after_id)s::bigint IS NULL OR id > %(after_id)s)
    AND (%(task)s::text IS NULL OR job_type = %(task)s)
    AND (%(status)s::text IS NULL OR status = %(status)s)
    AND (%(trigger)s::text IS NULL OR trigger = %(trigger)s)
    AND (%(since)s::timestamptz IS NULL OR slot >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR slot <= %(until)s)
ORDER BY id DESC
LIMIT %(limit)s;

-- fold_slots: return each slot's state: running, else done, else done in part, else the strongest of the rest
-- A refused delivery says less about its slot than that the slot was missed later.
SELECT job_type, slot,
    CASE
        WHEN bool_or(status = 'running') THEN 'running'
        WHEN bool_or(status = 'succeeded' AND NOT more) THEN 'succeeded'
        WHEN bool_or(status = 'succeeded') THEN 'partial'
        WHEN bool_or(status = 'failed') THEN 'failed'
        WHEN bool_or(status = 'skipped' AND ran) THEN 'skipped'
        WHEN bool_or(status = 'missed') THEN 'missed'
        ELSE 'skipped'
    END,
    sum(items),
    count(*) FILTER (WHERE ran)
FROM signalbox.job_history
WHERE job_type = ANY (%(tasks)s) AND slot >= %(since)s AND slot <= %(until)s
GROUP BY job_type, slot;

-- find_first_due: return each task's first slot that can have been due, as note_schedule does; none without a note or run
SELECT asked.task, CASE
    WHEN known.schedule <> asked.schedule THEN NULL
    WHEN known.changed THEN known.known_since
    ELSE least(known.known_since, (
        SELECT min(slot) FROM signalbox.job_history WHERE job_type = asked.task AND trigger = 'schedule'
    ))
END
FROM unnest(%(tasks)s::text[], %(schedules)s::text[]) AS asked (task, schedule)
LEFT JOIN signalbox.task_schedules AS known ON known.task = asked.task;
