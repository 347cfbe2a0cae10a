-- read_due: return when the job first became due, which is the same in each attempt
SELECT queued_at FROM signalbox.attempts WHERE job_id = %(job_id)s ORDER BY attempt_number LIMIT 1;

-- read_skipped: return whether a skipped run was begun at all, and whether its slot has succeeded without it
SELECT r.ran, EXISTS (
    SELECT FROM signalbox.job_history AS done
    WHERE done.job_type = r.job_type AND done.slot = r.slot AND done.status = 'succeeded' AND NOT done.more
        AND (%(since)s::timestamptz IS NULL OR done.started_at >= %(since)s)
)
FROM signalbox.job_history AS r
WHERE r.id = %(run_id)s;
