-- note_schedule: return since when the task has had this schedule; a changed schedule starts now
-- Rows of the ledger from before we first looked count too: the rules may have fired before the first reconciling.
INSERT INTO signalbox.task_schedules AS known (task, schedule, known_since)
VALUES (%(task)s, %(schedule)s, now())  -- the database's clock: a run for a past instant knows nothing earlier
ON CONFLICT (task) DO UPDATE
SET schedule = excluded.schedule,
    changed = known.changed OR known.schedule <> excluded.schedule,
    known_since = CASE WHEN known.schedule = excluded.schedule THEN known.known_since ELSE excluded.known_since END
RETURNING CASE WHEN changed THEN known_since ELSE least(known_since, (
    SELECT min(slot) FROM signalbox.job_history WHERE job_type = %(task)s AND trigger = 'schedule'
)) END;

-- list_slots: return slots that had a run, are known as missed, or came while disabled; not refused requests
SELECT DISTINCT slot FROM signalbox.job_history
WHERE job_type = %(task)s AND slot > %(since)s AND slot <= %(until)s
    AND (ran OR status = 'missed' OR (status = 'skipped' AND reason = %(disabled)s));

-- record_missed: add one row a slot, however many reconcilers look
INSERT INTO signalbox.job_history
    (job_type, slot, reference_time, trigger, status, reason, worker_id, started_at, finished_at, ran)
SELECT %(task)s, wanted, %(now)s, 'schedule', 'missed', 'no run came for this slot', %(worker_id)s, now(), now(),
    false
FROM unnest(%(slots)s::timestamptz[]) AS wanted
ON CONFLICT (job_type, slot) WHERE status = 'missed' DO NOTHING;

-- list_due: return missed slots that have had no run since; with `latest` only if no later slot has run
SELECT slot FROM (
    SELECT missed.slot
    FROM signalbox.job_history AS missed
    WHERE missed.job_type = %(task)s AND missed.status = 'missed'
        AND missed.slot >= %(since)s AND missed.slot <= %(until)s
        AND NOT EXISTS (
            SELECT FROM signalbox.job_history AS ran
            WHERE ran.job_type = missed.job_type AND ran.slot = missed.slot AND ran.ran
                AND (ran.id > missed.id OR ran.status = 'running' OR (ran.status = 'succeeded' AND NOT ran.more))
        )
        AND NOT (%(latest)s AND EXISTS (
            SELECT FROM signalbox.job_history AS later
            WHERE later.job_type = missed.job_type AND later.slot > missed.slot
                AND later.status IN ('running', 'succeeded')
        ))
    ORDER BY CASE WHEN %(latest)s THEN missed.slot END DESC, missed.slot
    LIMIT %(most)s
) AS due
ORDER BY slot;
