-- read_due: when the job first became due, which stays the same however often it is tried
SELECT queued_at FROM signalbox.attempts WHERE job_id = %(job_id)s ORDER BY attempt_number LIMIT 1;

-- read_skipped: whether a skipped run was begun at all, and else whether its slot has no need of it
SELECT r.ran, EXISTS (
    SELECT FROM signalbox.job_history AS done
    WHERE done.job_type = r.job_type AND done.slot = r.slot AND done.status = 'succeeded' AND NOT done.more
        AND (%(since)s::timestamptz IS NULL OR done.started_at >= %(since)s)
)
FROM signalbox.job_history AS r
WHERE r.id = %(run_id)s;
