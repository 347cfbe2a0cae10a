-- end_lost: end runs that have no live lease
-- A claim writes its lease and its row in one transaction, so a new run always has its lease.
UPDATE signalbox.job_history AS run
SET status = 'failed', finished_at = greatest(clock_timestamp(), run.started_at),
    error = signalbox.worker_lost()
WHERE run.status = 'running'
    AND NOT EXISTS (
        SELECT FROM signalbox.job_locks AS held
        WHERE held.worker_id = run.worker_id AND held.expires_at > clock_timestamp()
    )
RETURNING run.id, run.job_type, run.slot;

-- drop_expired: delete expired leases that were not given back
DELETE FROM signalbox.job_locks WHERE expires_at <= clock_timestamp();

-- list_resumable: return slots whose last run was lost, or left work that no continuation took up
-- A backfill dispatches its own lost slots again.
SELECT last.job_type, last.reference_time, last.request, last.step, last.more
FROM signalbox.job_history AS last
WHERE (last.more OR (last.status = 'failed' AND last.error ->> 'type' = 'WorkerLost'))
    AND last.finished_at > clock_timestamp() - %(lookback)s
    AND (NOT last.more OR (NOT last.capped AND last.finished_at < clock_timestamp() - %(patience)s))
    AND (last.request #> '{origin,backfill_id}') IS NULL
    AND NOT EXISTS (
        SELECT FROM signalbox.job_history AS newer
        WHERE newer.job_type = last.job_type AND newer.slot = last.slot AND newer.id > last.id
            AND newer.ran  -- even if it found nothing to do
    )
    AND (
        SELECT count(*) FROM signalbox.job_history AS loss
        WHERE loss.job_type = last.job_type AND loss.slot = last.slot
            AND loss.status = 'failed' AND loss.error ->> 'type' = 'WorkerLost'
    ) < %(most_losses)s
ORDER BY last.id
LIMIT 100;
