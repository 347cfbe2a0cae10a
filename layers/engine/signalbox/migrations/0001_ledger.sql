-- serves: 1
-- The ledger of runs, the leases on slots, and backfills.

CREATE TABLE signalbox.job_locks (
    id text PRIMARY KEY,
    worker_id text NOT NULL,
    locked_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE signalbox.job_locks IS
    'A lease on a slot, id "{task}:{slot}", or on a whole task, id "{task}". Taken over once expired; given back with the run.';

CREATE TABLE signalbox.job_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_type text NOT NULL,
    slot timestamptz NOT NULL,
    reference_time timestamptz,
    trigger text NOT NULL,
    status text NOT NULL,
    items bigint NOT NULL DEFAULT 0,
    more boolean NOT NULL DEFAULT false,
    capped boolean NOT NULL DEFAULT false,
    step integer NOT NULL DEFAULT 0,
    ran boolean NOT NULL DEFAULT true,
    request jsonb,
    reason text,
    error jsonb,
    worker_id text NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    duration_ms bigint GENERATED ALWAYS AS (floor(extract(epoch FROM finished_at - started_at) * 1000)::bigint) STORED,
    CONSTRAINT trigger_known
        CHECK (trigger IN ('schedule', 'manual', 'backfill', 'catch_up', 'continuation')),
    CONSTRAINT run_status_known
        CHECK (status IN ('running', 'succeeded', 'failed', 'skipped', 'missed')),
    CONSTRAINT items_counted CHECK (items >= 0),
    CONSTRAINT finished_at_iff_final CHECK ((status = 'running') = (finished_at IS NULL)),
    CONSTRAINT finished_after_started CHECK (finished_at >= started_at),
    CONSTRAINT error_iff_failed CHECK ((status = 'failed') = (error IS NOT NULL)),
    CONSTRAINT reason_where_not_run CHECK (status NOT IN ('skipped', 'missed') OR reason IS NOT NULL),
    CONSTRAINT more_only_after_success CHECK (NOT more OR status = 'succeeded'),
    CONSTRAINT capped_only_with_more CHECK (NOT capped OR more)
);
COMMENT ON TABLE signalbox.job_history IS 'The ledger: one row a run, and one for each slot that came without a run.';
COMMENT ON COLUMN signalbox.job_history.more IS
    'Work is left for this slot: it counts as done only once a run has succeeded with nothing left.';
COMMENT ON COLUMN signalbox.job_history.reference_time IS 'The now of the run, all through it.';
COMMENT ON COLUMN signalbox.job_history.request IS
    'What was asked for beside task and time, so that a lost run can be asked for again.';
COMMENT ON COLUMN signalbox.job_history.capped IS
    'Work is left, and the slot has had all the continuations it may have.';
COMMENT ON COLUMN signalbox.job_history.ran IS
    'A worker held the slot. False for deliveries that were turned away, requests that were refused, and missed slots.';
COMMENT ON COLUMN signalbox.job_history.step IS 'How many continuations of the slot came before this run.';

-- Has this slot succeeded? What happened to each slot?
CREATE INDEX runs_of_slot ON signalbox.job_history (job_type, slot);
-- Pruning by age, and the newest runs of a task.
CREATE INDEX runs_by_age ON signalbox.job_history (job_type, started_at);
-- The sweep looks at these alone, and there are never many.
CREATE INDEX runs_at_work ON signalbox.job_history (job_type, slot) WHERE status = 'running';
-- The sweep again: runs that were lost, and chains that broke off, of the last hours.
CREATE INDEX runs_to_resume ON signalbox.job_history (finished_at)
    WHERE more OR (status = 'failed' AND error ->> 'type' = 'WorkerLost');
-- A slot is missed once, however many reconcilers look.
CREATE UNIQUE INDEX slot_missed_once ON signalbox.job_history (job_type, slot) WHERE status = 'missed';

CREATE FUNCTION signalbox.refuse_rewrite() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% row % is final (%): it can''t become %', TG_TABLE_NAME, OLD.id, OLD.status, NEW.status
        USING ERRCODE = 'check_violation';
END $$;

-- The WHEN keeps the legal path, running to final, free of a function call.
CREATE TRIGGER final_runs_stay BEFORE UPDATE OF status ON signalbox.job_history
    FOR EACH ROW WHEN (OLD.status <> 'running') EXECUTE FUNCTION signalbox.refuse_rewrite();

CREATE FUNCTION signalbox.worker_lost() RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT '{"type": "WorkerLost", "message": "the worker stopped without a word and its lease ran out"}'::jsonb
$$;

-- Functions, not statements sent each time: the steps of a claim must each see what the one before had to wait for,
-- in one round trip, and a session plans them once.

CREATE FUNCTION signalbox.claim_run(
    of_task text, of_slot timestamptz, slot_lock text, alone boolean, by_worker text, lease interval, why text,
    as_of timestamptz, at_step integer, forced boolean, forced_since timestamptz, asked jsonb,
    OUT run_id bigint, OUT verdict text, OUT because text
) LANGUAGE plpgsql AS $$
DECLARE
    -- In the order in which they are taken, the same in every worker, so that two can't wait for each other.
    wanted text[] := CASE WHEN alone THEN ARRAY[of_task, slot_lock] ELSE ARRAY[slot_lock] END;
    taken integer;
    done bigint;
BEGIN
    -- A crash of the server may lose a claim that was not flushed, and the worker's connection with it: whatever the
    -- run commits flushes its claim too, so none of its effects can outlive it.
    PERFORM set_config('synchronous_commit', 'off', true);
    -- Whoever is just giving the lease back is waited for here, and what they recorded is seen below.
    INSERT INTO signalbox.job_locks AS held (id, worker_id, locked_at, expires_at)
    SELECT lock, by_worker, clock_timestamp(), clock_timestamp() + lease FROM unnest(wanted) AS lock
    ON CONFLICT (id) DO UPDATE
    SET worker_id = excluded.worker_id, locked_at = excluded.locked_at, expires_at = excluded.expires_at
    WHERE held.expires_at <= clock_timestamp();
    GET DIAGNOSTICS taken = ROW_COUNT;
    SELECT id INTO done FROM signalbox.job_history
    WHERE job_type = of_task AND slot = of_slot AND status = 'succeeded' AND NOT more
        -- A forced run disregards what succeeded before it was ordered, and not what its own duplicate has done since.
        AND (NOT forced OR started_at >= forced_since)
    LIMIT 1;
    IF taken = cardinality(wanted) AND done IS NULL THEN
        -- Whoever held the lease before and let it run out did not finish.
        UPDATE signalbox.job_history AS lost
        SET status = 'failed', finished_at = greatest(clock_timestamp(), lost.started_at),
            error = signalbox.worker_lost()
        WHERE lost.job_type = of_task AND lost.slot = of_slot AND lost.status = 'running';
        verdict := 'running';
        INSERT INTO signalbox.job_history
            (job_type, slot, reference_time, trigger, step, request, worker_id, started_at, status)
        VALUES (of_task, of_slot, as_of, why, at_step, asked, by_worker, clock_timestamp(), verdict)
        RETURNING id INTO run_id;
        RETURN;
    END IF;
    verdict := 'skipped';
    IF done IS NOT NULL THEN
        because := format('the slot has already succeeded, in run %s', done);
    ELSIF EXISTS (
        SELECT FROM signalbox.job_locks WHERE id = slot_lock AND worker_id <> by_worker
    ) THEN
        because := 'the slot is being run by another worker';
    ELSE
        verdict := 'missed';
        because := 'another slot of the task is being run, and its runs may not overlap';
    END IF;
    DELETE FROM signalbox.job_locks WHERE id = ANY (wanted) AND worker_id = by_worker;
    -- Missed anew: the row takes its place behind the runs that the slot has had since.
    DELETE FROM signalbox.job_history
    WHERE job_type = of_task AND slot = of_slot AND status = 'missed' AND verdict = 'missed';
    INSERT INTO signalbox.job_history
        (job_type, slot, reference_time, trigger, step, request, worker_id, started_at, finished_at, status, reason, ran)
    VALUES (
        of_task, of_slot, as_of, why, at_step, asked, by_worker, now(), now(),
        -- A backfill gives its slot out again by itself.
        CASE WHEN asked #> '{origin,backfill_id}' IS NULL THEN verdict ELSE 'skipped' END, because, false
    )
    ON CONFLICT (job_type, slot) WHERE status = 'missed' DO UPDATE SET reason = excluded.reason
    RETURNING id INTO run_id;
END $$;
COMMENT ON FUNCTION signalbox.claim_run IS
    'Takes the slot''s lease, and the task''s where it must be alone, and opens a run; or records why there is none.';

CREATE FUNCTION signalbox.end_run(
    which bigint, by_worker text, slot_lock text, of_task text, becomes text, counted bigint, has_more boolean,
    is_capped boolean, because text, fault jsonb
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    took bigint;
BEGIN
    UPDATE signalbox.job_history
    SET status = becomes, items = counted, more = has_more, capped = is_capped, reason = because, error = fault,
        finished_at = greatest(clock_timestamp(), started_at)
    WHERE id = which AND status = 'running' AND worker_id = by_worker
    RETURNING duration_ms INTO took;
    IF FOUND THEN
        DELETE FROM signalbox.job_locks WHERE id IN (slot_lock, of_task) AND worker_id = by_worker;
    ELSE
        -- Asked again because the answer got lost on its way.
        SELECT duration_ms INTO took FROM signalbox.job_history
        WHERE id = which AND worker_id = by_worker AND status = becomes AND error ->> 'type' IS DISTINCT FROM 'WorkerLost';
    END IF;
    RETURN took;
END $$;
COMMENT ON FUNCTION signalbox.end_run IS
    'Ends a run and gives its leases back; answers its milliseconds, or null where it was given up in the meantime.';

CREATE TABLE signalbox.task_schedules (
    task text PRIMARY KEY,
    schedule text NOT NULL,
    known_since timestamptz NOT NULL,
    changed boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE signalbox.task_schedules IS
    'Since when a task has had its schedule: no slot before that can have been missed.';

CREATE TABLE signalbox.backfills (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    task text NOT NULL,
    range_from timestamptz NOT NULL,
    range_to timestamptz NOT NULL,
    rate_per_minute integer NOT NULL,
    force boolean NOT NULL DEFAULT false,
    params jsonb NOT NULL DEFAULT '{}',
    status text NOT NULL DEFAULT 'running',
    reason text,
    requested_by text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT backfill_status_known CHECK (status IN ('running', 'paused', 'cancelled', 'completed')),
    CONSTRAINT backfill_finished_iff_final
        CHECK ((status IN ('cancelled', 'completed')) = (finished_at IS NOT NULL)),
    CONSTRAINT backfill_range_in_order CHECK (range_from <= range_to),
    CONSTRAINT backfill_rate_positive CHECK (rate_per_minute > 0)
);

CREATE TABLE signalbox.backfill_slots (
    backfill_id uuid NOT NULL REFERENCES signalbox.backfills ON DELETE CASCADE,
    slot timestamptz NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0,
    run_id bigint,
    dispatched_at timestamptz,
    finished_at timestamptz,
    PRIMARY KEY (backfill_id, slot),
    CONSTRAINT backfill_slot_status_known
        CHECK (status IN ('pending', 'dispatched', 'succeeded', 'failed', 'skipped', 'cancelled')),
    CONSTRAINT backfill_slot_finished_iff_final
        CHECK ((status IN ('pending', 'dispatched')) = (finished_at IS NULL))
);
-- The next slots of a backfill, and those whose invocation got lost.
CREATE INDEX backfill_slots_open ON signalbox.backfill_slots (backfill_id, slot) WHERE status IN ('pending', 'dispatched');

CREATE VIEW signalbox.backfill_progress AS
SELECT b.id, b.task, b.range_from, b.range_to, b.rate_per_minute, b.force, b.params, b.status, b.reason,
    b.requested_by, b.created_at, b.finished_at, counted.slots
FROM signalbox.backfills AS b
CROSS JOIN LATERAL (
    SELECT jsonb_build_object(
        'total', count(*),
        'pending', count(*) FILTER (WHERE s.status = 'pending'),
        'dispatched', count(*) FILTER (WHERE s.status = 'dispatched'),
        'succeeded', count(*) FILTER (WHERE s.status = 'succeeded'),
        'failed', count(*) FILTER (WHERE s.status = 'failed'),
        'skipped', count(*) FILTER (WHERE s.status = 'skipped'),
        'cancelled', count(*) FILTER (WHERE s.status = 'cancelled')
    ) AS slots
    FROM signalbox.backfill_slots AS s WHERE s.backfill_id = b.id
) AS counted;
COMMENT ON VIEW signalbox.backfill_progress IS 'Each backfill with its slots counted by status.';
