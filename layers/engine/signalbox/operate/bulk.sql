-- limit_waiting: limit the wait for locks in this transaction
SELECT set_config('lock_timeout', %(milliseconds)s, true);

-- lock: lock those of these jobs that are in one of the states, and skip those that another transaction has locked
-- Not FOR UPDATE, which would wait for every submit that names one of them as a parent.
SELECT id::text FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status = ANY (%(statuses)s::text[])
ORDER BY id FOR NO KEY UPDATE SKIP LOCKED;

-- lock_patiently: do the same, but wait for the others, and then go by the state that they left
SELECT id::text FROM signalbox.jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status = ANY (%(statuses)s::text[])
ORDER BY id FOR NO KEY UPDATE;
