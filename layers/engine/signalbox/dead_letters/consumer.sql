-- look_at_job: the state of a message's job; one that waits to be claimed is sent again by dispatch_jobs, without delay
WITH woken AS (
    UPDATE signalbox.jobs SET send_at = greatest(now(), scheduled_for), updated_at = clock_timestamp()
    WHERE id = %(id)s::uuid AND (status = 'queued' OR (status = 'pending' AND unmet_dependencies = 0))
)
SELECT status FROM signalbox.jobs WHERE id = %(id)s::uuid;

-- look_at_task: when a scheduled task is due, and from when on reconcile_slots looks for its slots; none that is not one
-- A message may lie in its queue for 14 days, and a slot is looked for during seven at most.
SELECT schedule, greatest(known_since, now() - interval '1 day') FROM signalbox.task_schedules WHERE task = %(task)s;

-- look_at_slot: whether a run of it has begun; one that failed has an error of its own, and reconcile_slots leaves it
SELECT FROM signalbox.job_history WHERE job_type = %(task)s AND slot = %(slot)s AND ran AND status <> 'succeeded' LIMIT 1;

-- reopen: what was resolved of this kind of failure is open again, unless this is a message that has come before
SELECT signalbox.reopen_dead_letters(ARRAY[%(fingerprint)s])
WHERE NOT EXISTS (SELECT FROM signalbox.dead_letter_jobs WHERE id = %(id)s::uuid);

-- write: one dead letter, unless its message has come before
INSERT INTO signalbox.dead_letter_jobs (
    id, source, job_type, payload, failure_reason, error_type, final_error_message, final_error_stack, total_attempts,
    fingerprint, metadata, first_failed_at, last_failed_at
)
SELECT %(id)s::uuid, %(source)s, %(job_type)s, %(payload)s::jsonb, %(failure_reason)s, %(error_type)s, %(error_message)s,
    %(error_stack)s, %(total_attempts)s, %(fingerprint)s, %(metadata)s::jsonb, moment, moment
FROM clock_timestamp() AS moment
ON CONFLICT (id) DO NOTHING;
