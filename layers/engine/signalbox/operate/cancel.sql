-- cancel_waiting: cancel jobs before they have begun (again)
UPDATE signalbox.jobs AS j
SET status = 'cancelled', completed_at = t.now, updated_at = t.now, send_at = NULL, held_by = NULL,
    actual_duration = signalbox.time_at_work(j.id, j.first_started_at, j.executions),
    cancel_requested_at = coalesce(j.cancel_requested_at, t.now),
    error_details = jsonb_build_object('type', 'Cancelled', 'message', %(why)s::text)
-- One instant: columns of a row are compared with each other.
FROM (SELECT clock_timestamp() AS now OFFSET 0) AS t
WHERE j.id = ANY (%(ids)s::uuid[]);

-- resolve_dependents: resolve what waited for them; return what that released, cancelled or failed
SELECT id::text FROM unnest(signalbox.resolve_dependents(%(ids)s::uuid[])) AS id WHERE id IS NOT NULL;

-- find_released: return those of them that may be sent
-- This needs its own statement: one sees nothing of what a function that it calls has changed.
SELECT id::text FROM signalbox.jobs WHERE id = ANY (%(ids)s::uuid[]) AND status = 'pending';

-- ask_running: ask running jobs to stop; their worker's heartbeat reads this
UPDATE signalbox.jobs SET cancel_requested_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE id = ANY (%(ids)s::uuid[]) AND cancel_requested_at IS NULL
RETURNING id::text;
