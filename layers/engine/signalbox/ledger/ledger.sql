-- claim: take the slot's lease and open its row, or leave a row that says why not
SELECT run_id, verdict, because FROM signalbox.claim_run(
    %(job_type)s, %(slot)s, %(lock)s, %(alone)s, %(worker_id)s, %(lease)s, %(trigger)s, %(reference_time)s, %(step)s,
    %(force)s, %(force_since)s, %(request)s
);

-- record: end a run and give its lease back, unless it was given up in the meantime
SELECT signalbox.end_run(
    %(run_id)s, %(worker_id)s, %(lock)s, %(job_type)s, %(status)s, %(items)s, %(more)s, %(capped)s, %(reason)s,
    %(error)s
);

-- record_disabled: add a skipped row for a slot whose task is disabled, one for each event
INSERT INTO signalbox.job_history
    (job_type, slot, reference_time, trigger, worker_id, started_at, finished_at, status, reason, ran)
SELECT %(job_type)s, %(slot)s, %(reference_time)s, %(trigger)s, %(worker_id)s, now(), now(), 'skipped', %(reason)s, false
RETURNING id;

-- record_refusal: add a failed row for a request that can't be run
INSERT INTO signalbox.job_history
    (job_type, slot, reference_time, trigger, worker_id, started_at, finished_at, status, error, ran)
SELECT %(job_type)s, %(slot)s, %(reference_time)s, %(trigger)s, %(worker_id)s, now(), now(), 'failed', %(error)s, false
WHERE NOT EXISTS (
    SELECT FROM signalbox.job_history
    WHERE job_type = %(job_type)s AND slot = %(slot)s AND status = 'failed' AND starts_with(worker_id, %(request)s)
)
RETURNING id;
