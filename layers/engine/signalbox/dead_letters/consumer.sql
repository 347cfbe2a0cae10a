-- look_at_job: return the state of a message's job; if it waits to be claimed, let dispatch_jobs send it again at once
WITH woken AS (
    UPDATE signalbox.jobs SET send_at = greatest(now(), scheduled_for), updated_at = clock_timestamp()
    WHERE id = %(id)s::uuid AND (status = 'queued' OR (status = 'pending' AND unmet_dependencies = 0))
)
SELECT status FROM signalbox.jobs WHERE id = %(id)s::uuid;

-- look_at_task: return a task's schedule, if it has one, and since when reconcile_slots looks for its slots
-- A message may lie in its queue for 14 days, and a slot is looked for during seven at most.
SELECT schedule, greatest(known_since, now() - interval '1 day') FROM signalbox.task_schedules WHERE task = %(task)s;

-- look_at_slot: return whether a run of it has begun; a failed run has its own error, and reconcile_slots leaves it
SELECT FROM signalbox.job_history WHERE job_type = %(task)s AND slot = %(slot)s AND ran AND status <> 'succeeded' LIMIT 1;

-- write: add one dead letter, unless its message has come before; ignore it, or reopen its kind, as a failed job does
WITH ignored AS MATERIALIZED (
    SELECT ignored_by, reason FROM signalbox.ignore_failures(ARRAY[%(fingerprint)s])
), returned AS MATERIALIZED (
    SELECT signalbox.reopen_kinds(ARRAY[%(fingerprint)s]) AS regressed WHERE NOT EXISTS (SELECT FROM ignored)
)
INSERT INTO signalbox.dead_letter_jobs (
    id, source, job_type, payload, failure_reason, error_type, final_error_message, final_error_stack, total_attempts,
    fingerprint, metadata, first_failed_at, last_failed_at, status, resolved_at, resolved_by, resolution_notes, regressed_at
)
SELECT %(id)s::uuid, %(source)s, %(job_type)s, %(payload)s::jsonb, %(failure_reason)s, %(error_type)s, %(error_message)s,
    %(error_stack)s, %(total_attempts)s, %(fingerprint)s, %(metadata)s::jsonb, moment, moment,
    CASE WHEN regressed IS NULL THEN 'ignored' ELSE 'pending' END, CASE WHEN regressed IS NULL THEN moment END,
    ignored_by, reason, CASE WHEN cardinality(regressed) > 0 THEN moment END
FROM clock_timestamp() AS moment LEFT JOIN ignored ON true LEFT JOIN returned ON true
ON CONFLICT (id) DO NOTHING;
