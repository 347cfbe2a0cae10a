-- serves: 1
-- The whole schema of the engine: first the ledger of runs, the leases on slots, and backfills; then the jobs and their
-- attempts, what they wait for, schedules, caps, and what failed for good.

-- ---- Tasks: the ledger

CREATE TABLE signalbox.job_locks (
    id text PRIMARY KEY,
    worker_id text NOT NULL,
    locked_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE signalbox.job_locks IS
    'A lease on a slot, id "{task}:{slot}", or on a whole task, id "{task}". An expired lease is taken over; the end of the run releases it.';

CREATE TABLE signalbox.job_history (
    id bigint GENERATED ALWAYS AS IDENTITY,
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
    CONSTRAINT capped_only_with_more CHECK (NOT capped OR more),
    PRIMARY KEY (id, slot)
) PARTITION BY RANGE (slot);
COMMENT ON TABLE signalbox.job_history IS 'The ledger: one row for each run, and one for each missed slot.';
COMMENT ON COLUMN signalbox.job_history.more IS
    'Work is left for this slot. The slot is done once a run succeeds with no work left.';
COMMENT ON COLUMN signalbox.job_history.reference_time IS 'What time it is for the run, from its start to its end.';
COMMENT ON COLUMN signalbox.job_history.request IS
    'The rest of the request, such as its params, so that a lost run can be repeated.';
COMMENT ON COLUMN signalbox.job_history.capped IS
    'Work is left, and the slot has used all its continuations.';
COMMENT ON COLUMN signalbox.job_history.ran IS
    'A worker held the slot''s lease. False for duplicate deliveries, refused requests and missed slots.';
COMMENT ON COLUMN signalbox.job_history.step IS 'The number of continuations of the slot before this run.';

-- Has this slot succeeded? What happened to each slot?
CREATE INDEX runs_of_slot ON signalbox.job_history (job_type, slot);
-- Pruning by age, and the newest runs of a task.
CREATE INDEX runs_by_age ON signalbox.job_history (job_type, started_at);
-- The sweep reads only these rows, and there are never many.
CREATE INDEX runs_at_work ON signalbox.job_history (job_type, slot) WHERE status = 'running';
-- The sweep also reads these: lost runs and interrupted continuations of the last hours.
CREATE INDEX runs_to_resume ON signalbox.job_history (finished_at)
    WHERE more OR (status = 'failed' AND error ->> 'type' = 'WorkerLost');
-- A slot is recorded as missed once, even if several reconcilers find it.
CREATE UNIQUE INDEX slot_missed_once ON signalbox.job_history (job_type, slot) WHERE status = 'missed';

CREATE FUNCTION signalbox.refuse_rewrite() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job_history row % is final (%): it can''t become %', OLD.id, OLD.status, NEW.status
        USING ERRCODE = 'check_violation';
END $$;

-- With the WHEN, the legal path from running to a final status calls no function.
CREATE TRIGGER final_runs_stay BEFORE UPDATE OF status ON signalbox.job_history
    FOR EACH ROW WHEN (OLD.status <> 'running') EXECUTE FUNCTION signalbox.refuse_rewrite();

-- Partitioned by time: job_history by slot here, job_executions by the job's id, whose first bits are its time. The
-- default partition holds rows that fit no other: from wrong clocks, and from periods without a partition.
-- docs/scale.md has the details.
CREATE TABLE signalbox.job_history_default PARTITION OF signalbox.job_history DEFAULT;

CREATE FUNCTION signalbox.first_id(since timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT (lpad(to_hex(greatest(0, floor(extract(epoch FROM since) * 1000))::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
COMMENT ON FUNCTION signalbox.first_id IS 'The smallest version 7 UUID of this instant. Ids made later are greater.';

CREATE FUNCTION signalbox.time_of(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
$$;
COMMENT ON FUNCTION signalbox.time_of IS 'When a version 7 UUID was made, by the clock of its maker.';

CREATE VIEW signalbox.partitions AS
SELECT parent.relname::text AS of_table, child.relname::text AS name, bound.starts_at, bound.ends_at
FROM pg_catalog.pg_inherits AS i
JOIN pg_catalog.pg_class AS parent ON parent.oid = i.inhparent AND parent.relkind = 'p'
JOIN pg_catalog.pg_class AS child ON child.oid = i.inhrelid AND child.relispartition
CROSS JOIN LATERAL pg_catalog.regexp_match(
    pg_catalog.pg_get_expr(child.relpartbound, child.oid), '^FOR VALUES FROM \(''(.+)''\) TO \(''(.+)''\)$'
) AS text
CROSS JOIN LATERAL (
    SELECT CASE WHEN text[1] ~ '^[0-9a-f]{8}-' THEN signalbox.time_of(text[1]::uuid) ELSE text[1]::timestamptz END AS starts_at,
        CASE WHEN text[2] ~ '^[0-9a-f]{8}-' THEN signalbox.time_of(text[2]::uuid) ELSE text[2]::timestamptz END AS ends_at
) AS bound
WHERE parent.relnamespace = 'signalbox'::regnamespace AND text IS NOT NULL;
COMMENT ON VIEW signalbox.partitions IS 'The partitions of each partitioned table, with the period that each holds.';

-- Return the columns that a copy of a row may set.
CREATE FUNCTION signalbox.columns_of(of_table text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_catalog.pg_attribute
    WHERE attrelid = ('signalbox.' || of_table)::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
$$;

-- Add one partition, and move into it the default partition's rows of its period. The caller checks permissions.
CREATE FUNCTION signalbox.add_partition(of_table text, starts timestamptz, ends timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    part text := of_table || to_char(starts AT TIME ZONE 'UTC', '_YYYYMMDD');
    rest text := of_table || '_default';
    key text := (SELECT attname FROM pg_catalog.pg_attribute AS a
        JOIN pg_catalog.pg_partitioned_table AS p ON p.partrelid = a.attrelid AND p.partattrs[0] = a.attnum
        WHERE p.partrelid = ('signalbox.' || of_table)::regclass);
    lower text := CASE key WHEN 'slot' THEN starts::text ELSE signalbox.first_id(starts)::text END;
    upper text := CASE key WHEN 'slot' THEN ends::text ELSE signalbox.first_id(ends)::text END;
    columns text := signalbox.columns_of(of_table);
    options text := (SELECT ' WITH (' || array_to_string(reloptions, ', ') || ')' FROM pg_catalog.pg_class
        WHERE oid = ('signalbox.' || rest)::regclass);
BEGIN
    EXECUTE format(
        'CREATE TABLE signalbox.%I (LIKE signalbox.%I INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING CONSTRAINTS)',
        part, of_table
    ) || coalesce(options, '');
    -- Lock the parent itself: new statements wait here, and then see the new partition. A statement that had started
    -- earlier would search the old partition for the moved rows.
    EXECUTE format('LOCK TABLE ONLY signalbox.%I IN ACCESS EXCLUSIVE MODE', of_table);
    EXECUTE format(
        'WITH moved AS (DELETE FROM signalbox.%1$I WHERE %2$I >= %3$L AND %2$I < %4$L RETURNING %5$s) '
        'INSERT INTO signalbox.%6$I (%5$s) SELECT %5$s FROM moved', rest, key, lower, upper, columns, part
    );
    EXECUTE format(
        'ALTER TABLE signalbox.%I ATTACH PARTITION signalbox.%I FOR VALUES FROM (%L) TO (%L)', of_table, part, lower, upper
    );
END $$;

CREATE FUNCTION signalbox.make_partitions(of_table text, days integer, at_any_cost boolean DEFAULT false) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
-- Give up after this time and try on another day, because every new statement waits behind this lock.
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '1500ms' AS $$
DECLARE
    most_moved CONSTANT bigint := 10000;
    most_scanned CONSTANT bigint := 1 << 30;
    today timestamptz := date_trunc('day', clock_timestamp());
    length interval := make_interval(days => days);
    starts timestamptz;
    ends timestamptz;
    held bigint;
    made integer := 0;
BEGIN
    IF of_table NOT IN ('job_executions', 'job_history') OR days NOT BETWEEN 1 AND 366 THEN
        RAISE EXCEPTION 'can''t make partitions of % days for ''%'': name job_executions or job_history, and 1 to 366 days',
            days, of_table USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('signalbox.partitions ' || of_table, 0));
    SELECT max(p.ends_at) INTO starts FROM signalbox.partitions AS p WHERE p.of_table = make_partitions.of_table;
    -- After a long time without partitions, older rows stay in the default partition and are deleted row by row.
    starts := greatest(coalesce(starts, today), today - 60 * length);
    IF starts < today + 2 * length AND NOT at_any_cost
        AND pg_relation_size(('signalbox.' || of_table || '_default')::regclass) > most_scanned
    THEN
        RAISE EXCEPTION 'the default partition of % has more than 1 GB, and a new partition needs a scan of it under a lock',
            of_table USING ERRCODE = 'object_not_in_prerequisite_state', HINT = format(
                'In a quiet minute: SELECT signalbox.make_partitions(%L, %s, at_any_cost => true)', of_table, days);
    END IF;
    WHILE starts < today + 2 * length LOOP
        ends := starts + length;
        EXECUTE format(
            'SELECT count(*) FROM (SELECT FROM signalbox.%I WHERE %s LIMIT %s) AS held', of_table || '_default',
            CASE of_table WHEN 'job_history' THEN format('slot >= %L AND slot < %L', starts, ends)
                ELSE format('job_id >= %L AND job_id < %L', signalbox.first_id(starts), signalbox.first_id(ends)) END,
            most_moved + 1
        ) INTO held;
        -- A past period without rows needs no partition. One with too many rows to move at once is left alone.
        IF held <= most_moved AND (held > 0 OR ends > today) THEN
            PERFORM signalbox.add_partition(of_table, starts, ends);
            made := made + 1;
        END IF;
        starts := ends;
    END LOOP;
    RETURN made;
END $$;
COMMENT ON FUNCTION signalbox.make_partitions IS
    'Makes the missing partitions of a table, each of `days` days, up to twice that ahead. Returns how many it made.';
REVOKE EXECUTE ON FUNCTION signalbox.make_partitions FROM PUBLIC;

-- Return whether the partition exists and all of it is old enough. Refuse a snapshot that is older than the lock.
CREATE FUNCTION signalbox.may_drop(of_table text, which text, before timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'partition % can be dropped in READ COMMITTED only: otherwise recent changes would be lost', which
            USING ERRCODE = 'active_sql_transaction';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('signalbox.partitions ' || of_table, 0));
    RETURN EXISTS (
        SELECT FROM signalbox.partitions AS p
        WHERE p.of_table = may_drop.of_table AND p.name = which AND p.ends_at <= before
    );
END $$;

-- Move rows that must stay to the default partition, and drop this one. The caller has locked and checked the table.
CREATE FUNCTION signalbox.drop_partition(of_table text, which text, kept tid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    columns text := signalbox.columns_of(of_table);
BEGIN
    EXECUTE format('ALTER TABLE signalbox.%I DETACH PARTITION signalbox.%I', of_table, which);
    EXECUTE format(
        'INSERT INTO signalbox.%I (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM signalbox.%I WHERE ctid = ANY ($1)',
        of_table, columns, columns, which
    ) USING kept;
    EXECUTE format('DROP TABLE signalbox.%I', which);
END $$;

CREATE FUNCTION signalbox.drop_runs(which text, retained jsonb, most_kept integer DEFAULT 10000) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '1500ms' AS $$
DECLARE
    -- Keep everything less than a day old, whatever is asked for.
    youngest timestamptz := clock_timestamp() - interval '1 day';
    look text := format($look$
        SELECT coalesce(array_agg(ctid), '{}') FROM (
            SELECT ctid FROM signalbox.%I
            WHERE status = 'running' OR (started_at < least(($1 ->> job_type)::timestamptz, $2)) IS NOT TRUE
                OR NOT $1 ? job_type
            LIMIT $3
        ) AS kept
    $look$, which);
    kept tid[];
    total bigint;
BEGIN
    IF NOT signalbox.may_drop('job_history', which, youngest) THEN
        RETURN NULL;
    END IF;
    EXECUTE look INTO kept USING retained, youngest, most_kept + 1;
    IF cardinality(kept) > most_kept THEN
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT count(*) FROM signalbox.%I', which) INTO total;
    LOCK TABLE ONLY signalbox.job_history IN ACCESS EXCLUSIVE MODE;
    EXECUTE look INTO kept USING retained, youngest, most_kept + 1;
    IF cardinality(kept) > most_kept THEN
        RETURN NULL;
    END IF;
    PERFORM signalbox.drop_partition('job_history', which, kept);
    RETURN total - cardinality(kept);
END $$;
COMMENT ON FUNCTION signalbox.drop_runs IS
    'Drops a partition of job_history. `retained` has an instant for each task: older runs of the task may be deleted. Returns how many were; null if too many must stay.';
REVOKE EXECUTE ON FUNCTION signalbox.drop_runs FROM PUBLIC;

SELECT signalbox.make_partitions('job_history', 7);

CREATE FUNCTION signalbox.worker_lost() RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT '{"type": "WorkerLost", "message": "the worker stopped without a word and its lease ran out"}'::jsonb
$$;

-- These are functions and not single statements, because each step of a claim must see what the step before waited for.
-- That takes one round trip, and a session plans them once.

CREATE FUNCTION signalbox.claim_run(
    of_task text, of_slot timestamptz, slot_lock text, alone boolean, by_worker text, lease interval, why text,
    as_of timestamptz, at_step integer, forced boolean, forced_since timestamptz, asked jsonb,
    OUT run_id bigint, OUT verdict text, OUT because text
) LANGUAGE plpgsql AS $$
DECLARE
    -- Every worker takes them in the same order, so that two can't deadlock.
    wanted text[] := CASE WHEN alone THEN ARRAY[of_task, slot_lock] ELSE ARRAY[slot_lock] END;
    taken integer;
    done bigint;
BEGIN
    -- A crash of the server may lose a claim that was not flushed, and the worker's connection with it. Any commit of
    -- the run flushes its claim too, so none of its effects can outlive it.
    PERFORM set_config('synchronous_commit', 'off', true);
    -- This waits for a worker that is releasing the lease. What it recorded is visible below.
    INSERT INTO signalbox.job_locks AS held (id, worker_id, locked_at, expires_at)
    SELECT lock, by_worker, clock_timestamp(), clock_timestamp() + lease FROM unnest(wanted) AS lock
    ON CONFLICT (id) DO UPDATE
    SET worker_id = excluded.worker_id, locked_at = excluded.locked_at, expires_at = excluded.expires_at
    WHERE held.expires_at <= clock_timestamp();
    GET DIAGNOSTICS taken = ROW_COUNT;
    SELECT id INTO done FROM signalbox.job_history
    WHERE job_type = of_task AND slot = of_slot AND status = 'succeeded' AND NOT more
        -- A forced run ignores successes before its request, but not those of its own duplicate since.
        AND (NOT forced OR started_at >= forced_since)
    LIMIT 1;
    IF taken = cardinality(wanted) AND done IS NULL THEN
        -- A worker whose lease expired did not finish.
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
        -- A manual run does not become a missed slot: the person sees the answer.
        verdict := CASE why WHEN 'manual' THEN 'skipped' ELSE 'missed' END;
        because := 'another slot of the task is being run, and its runs may not overlap';
    END IF;
    IF done IS NULL THEN
        because := because || format(': see `signalbox history --task %s --status running`', of_task);
    END IF;
    DELETE FROM signalbox.job_locks WHERE id = ANY (wanted) AND worker_id = by_worker;
    -- The slot is missed again: its row moves behind the runs that the slot has had since.
    DELETE FROM signalbox.job_history
    WHERE job_type = of_task AND slot = of_slot AND status = 'missed' AND verdict = 'missed';
    INSERT INTO signalbox.job_history
        (job_type, slot, reference_time, trigger, step, request, worker_id, started_at, finished_at, status, reason, ran)
    VALUES (
        of_task, of_slot, as_of, why, at_step, asked, by_worker, now(), now(),
        -- A backfill dispatches its slot again by itself.
        CASE WHEN asked #> '{origin,backfill_id}' IS NULL THEN verdict ELSE 'skipped' END, because, false
    )
    ON CONFLICT (job_type, slot) WHERE status = 'missed' DO UPDATE SET reason = excluded.reason
    RETURNING id INTO run_id;
END $$;
COMMENT ON FUNCTION signalbox.claim_run IS
    'Takes the slot''s lease, and the task''s if its overlap policy needs it, and starts a run. Otherwise records why there is no run.';

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
        -- The caller repeats the call because the answer was lost.
        SELECT duration_ms INTO took FROM signalbox.job_history
        WHERE id = which AND worker_id = by_worker AND status = becomes AND error ->> 'type' IS DISTINCT FROM 'WorkerLost';
    END IF;
    RETURN took;
END $$;
COMMENT ON FUNCTION signalbox.end_run IS
    'Ends a run and releases its leases. Returns its milliseconds, or null if another worker has ended it in the meantime.';

CREATE TABLE signalbox.task_schedules (
    task text PRIMARY KEY,
    schedule text NOT NULL,
    known_since timestamptz NOT NULL,
    changed boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE signalbox.task_schedules IS
    'Since when a task has had its schedule. No slot before that can be missed.';

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
    changed_by text,
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
-- The next slots of a backfill, and slots whose invocation was lost.
CREATE INDEX backfill_slots_open ON signalbox.backfill_slots (backfill_id, slot) WHERE status IN ('pending', 'dispatched');

CREATE VIEW signalbox.backfill_progress AS
SELECT b.id, b.task, b.range_from, b.range_to, b.rate_per_minute, b.force, b.params, b.status, b.reason,
    b.requested_by, b.changed_by, b.created_at, b.updated_at, b.finished_at, counted.slots
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

-- ---- Jobs

-- Ids are made as in Python: they sort by time, and a job's id names the partition of its attempts.
CREATE FUNCTION signalbox.new_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT overlay(gen_random_uuid()::text PLACING
        left(signalbox.first_id(moment)::text, 14) || '7'
        || lpad(to_hex(extract(microseconds FROM moment)::bigint % 1000 * 4096 / 1000), 3, '0') FROM 1 FOR 18)::uuid
    FROM (SELECT clock_timestamp() AS moment OFFSET 0) AS clock
$$;
COMMENT ON FUNCTION signalbox.new_id IS 'Returns a new version 7 UUID.';

CREATE TABLE signalbox.jobs (
    id uuid PRIMARY KEY DEFAULT signalbox.new_id(),
    job_type text NOT NULL,
    job_name text,
    job_category text NOT NULL DEFAULT 'standard',
    lane text NOT NULL,
    priority smallint NOT NULL DEFAULT 5,
    status text NOT NULL DEFAULT 'pending',
    payload jsonb NOT NULL DEFAULT '{}',
    payload_version smallint NOT NULL DEFAULT 1,
    config jsonb,
    cursor jsonb,
    result jsonb,
    output_files text[],
    error_details jsonb,
    tenant text,
    cap_key text,
    subject_id text,
    correlation_id text,
    idempotency_key text,
    job_group text,
    parent_job_id uuid,
    schedule_id uuid,
    unmet_dependencies integer NOT NULL DEFAULT 0,
    tags text[],
    metadata jsonb,
    created_by text,
    attempts smallint NOT NULL DEFAULT 0,
    executions integer NOT NULL DEFAULT 0,
    throttles integer NOT NULL DEFAULT 0,
    throttled_since timestamptz,
    pieces integer NOT NULL DEFAULT 0,
    first_started_at timestamptz,
    max_attempts smallint NOT NULL,
    timeout_ms integer NOT NULL,
    scheduled_for timestamptz,
    send_at timestamptz,
    sends smallint NOT NULL DEFAULT 0,
    worker_id text,
    execution_node text,
    lease_token uuid,
    lease_expires_at timestamptz,
    heartbeat_at timestamptz,
    health_status text,
    progress_percent smallint NOT NULL DEFAULT 0,
    progress_message text,
    cancel_requested_at timestamptz,
    paused_by text,
    held_by text,
    held_since timestamptz,
    memory_usage_mb integer,
    cpu_usage_percent real,
    estimated_duration interval,
    actual_duration interval GENERATED ALWAYS AS (completed_at - started_at) STORED,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    queued_at timestamptz,
    started_at timestamptz,
    completed_at timestamptz,
    CONSTRAINT job_status_known
        CHECK (status IN ('pending', 'queued', 'running', 'completed', 'failed', 'cancelled', 'paused')),
    CONSTRAINT lane_known CHECK (lane IN ('high', 'normal', 'low', 'heavy')),
    CONSTRAINT priority_from_1_to_10 CHECK (priority BETWEEN 1 AND 10),
    CONSTRAINT attempts_counted CHECK (attempts >= 0 AND max_attempts >= 1),
    CONSTRAINT progress_is_a_share CHECK (progress_percent BETWEEN 0 AND 100),
    CONSTRAINT leased_iff_running CHECK (
        (status = 'running') = (lease_token IS NOT NULL) AND (status = 'running') = (lease_expires_at IS NOT NULL)
    ),
    CONSTRAINT started_where_running CHECK (status <> 'running' OR started_at IS NOT NULL),
    CONSTRAINT worker_known_where_running CHECK (status <> 'running' OR worker_id IS NOT NULL),
    CONSTRAINT heartbeat_only_where_running CHECK (status = 'running' OR (heartbeat_at IS NULL AND health_status IS NULL)),
    CONSTRAINT health_known CHECK (health_status IN ('HEALTHY', 'STALE', 'FAILED')),
    CONSTRAINT completed_at_iff_final
        CHECK ((status IN ('completed', 'failed', 'cancelled')) = (completed_at IS NOT NULL)),
    CONSTRAINT updated_not_before_completed CHECK (updated_at >= completed_at),
    CONSTRAINT error_where_failed CHECK (status <> 'failed' OR error_details IS NOT NULL),
    CONSTRAINT held_only_while_pending CHECK (held_by IS NULL OR (status = 'pending' AND unmet_dependencies = 0)),
    CONSTRAINT sent_iff_waiting CHECK (
        (send_at IS NOT NULL) = (
            status = 'queued' OR (status = 'pending' AND unmet_dependencies = 0 AND held_by IS NULL)
        )
    ),
    CONSTRAINT unmet_only_while_waiting
        CHECK (unmet_dependencies >= 0 AND (unmet_dependencies = 0 OR status IN ('pending', 'paused', 'cancelled', 'failed')))
) WITH (
    -- A job's row is written three or four times, with its entries in the indexes of waiting jobs. By autovacuum's
    -- default, a fifth of the table would be dead rows before a vacuum. A fiftieth costs claims and dispatches little.
    fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05
);
COMMENT ON TABLE signalbox.jobs IS 'One row for each job, and the only truth about it. A message on a lane only names a job to claim.';
COMMENT ON COLUMN signalbox.jobs.attempts IS 'Attempts started so far, without those that were released or throttled. The number of retries is one less.';
COMMENT ON COLUMN signalbox.jobs.executions IS 'Executions started so far, whether they count as attempts or not; equals the newest attempt_number.';
COMMENT ON COLUMN signalbox.jobs.throttles IS 'How often the job was rate-limited since throttled_since, the first time in this piece.';
COMMENT ON COLUMN signalbox.jobs.pieces IS 'How often the job has returned More since first_started_at, its first start.';
COMMENT ON COLUMN signalbox.jobs.send_at IS
    'When dispatch_jobs sends the job: at its time, or again if its message may be lost.';
COMMENT ON COLUMN signalbox.jobs.sends IS
    'How often the job was sent, or its lane checked for it, since its last claim. The wait doubles each time.';
COMMENT ON COLUMN signalbox.jobs.scheduled_for IS 'The earliest start: as submitted, or set by a retry, a snooze or a cap.';
COMMENT ON COLUMN signalbox.jobs.cursor IS 'Where a job that returned More continues.';
COMMENT ON COLUMN signalbox.jobs.cap_key IS 'Jobs with the same key share caps and rates by key. The submitter sets it, or the job type makes it of the payload.';
COMMENT ON COLUMN signalbox.jobs.started_at IS 'When the newest attempt started.';
COMMENT ON COLUMN signalbox.jobs.held_by IS
    'The cap or rate that holds the job, as kind:key. It has no message until there is room: the end of another job of the cap sends it.';
COMMENT ON COLUMN signalbox.jobs.paused_by IS
    'Who paused this job by itself. If null, a pause of its type, lane, tenant or key holds the job, and the end of that pause releases it.';

-- A second submit with the same key finds the first job while it exists.
CREATE UNIQUE INDEX job_submitted_once ON signalbox.jobs (job_type, idempotency_key) WHERE idempotency_key IS NOT NULL;
-- Due jobs, jobs whose message may be lost, and jobs that a worker with free capacity takes up.
CREATE INDEX jobs_to_send ON signalbox.jobs (lane, priority, send_at) WHERE send_at IS NOT NULL;
-- For the sweeps, the caps and the lists of running, paused or failed jobs. They are few compared with ended jobs.
CREATE INDEX jobs_watched ON signalbox.jobs (status, job_type, id) WHERE status IN ('running', 'paused', 'failed');
-- Jobs that wait for others are in neither index above; this one counts them.
CREATE INDEX jobs_blocked ON signalbox.jobs (lane, job_type) WHERE status = 'pending' AND unmet_dependencies > 0;
-- Jobs that a cap or a rate holds: the next one, and how many.
CREATE INDEX jobs_held ON signalbox.jobs (held_by, priority, id) WHERE held_by IS NOT NULL;
-- Suspects that wait until a cap may have room.
CREATE INDEX suspects_waiting ON signalbox.jobs (held_since)
    WHERE status = 'pending' AND held_since IS NOT NULL AND held_by IS NULL;
-- Counts the jobs cancelled in a period.
CREATE INDEX jobs_cancelled ON signalbox.jobs (completed_at) WHERE status = 'cancelled';
CREATE INDEX jobs_of_tenant ON signalbox.jobs (tenant, id) WHERE tenant IS NOT NULL;
CREATE INDEX jobs_of_subject ON signalbox.jobs (subject_id) WHERE subject_id IS NOT NULL;
CREATE INDEX jobs_of_correlation ON signalbox.jobs (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX jobs_of_group ON signalbox.jobs (job_group) WHERE job_group IS NOT NULL;
CREATE INDEX jobs_of_parent ON signalbox.jobs (parent_job_id) WHERE parent_job_id IS NOT NULL;
CREATE INDEX jobs_of_schedule ON signalbox.jobs (schedule_id, id) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_by_tag ON signalbox.jobs USING gin (tags) WHERE tags IS NOT NULL;

CREATE FUNCTION signalbox.refuse_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job % is %: it can''t become %', OLD.id, OLD.status, NEW.status
        USING ERRCODE = 'check_violation', CONSTRAINT = 'job_transition_known';
END $$;

-- With the WHEN, legal transitions call no function. A trigger before the update would lock each row first, with a
-- record in the write-ahead log.
CREATE TRIGGER job_transition_known AFTER UPDATE OF status ON signalbox.jobs
    FOR EACH ROW WHEN (
        OLD.status <> NEW.status AND (OLD.status || ' ' || NEW.status) NOT IN (
            'pending queued', 'pending failed', 'pending cancelled', 'pending paused',
            'queued running', 'queued pending', 'queued cancelled', 'queued paused',
            'running completed', 'running pending', 'running failed', 'running cancelled',
            'paused pending', 'paused failed', 'paused cancelled',
            'failed pending'
        )
    ) EXECUTE FUNCTION signalbox.refuse_transition();

-- Written once, when the attempt ends; until then its job's row has everything. No foreign key: it would cost each
-- attempt a lock on its job, which its end holds anyway. Attempts are deleted with their partition, or by prune_jobs
-- with their job. New partitions take their storage options from the default one.
CREATE TABLE signalbox.job_executions (
    job_id uuid NOT NULL,
    attempt_number integer NOT NULL,
    job_type text NOT NULL,
    lane text NOT NULL,
    status text NOT NULL,
    lease_token uuid NOT NULL,
    worker_id text NOT NULL,
    execution_node text,
    queued_at timestamptz,
    started_at timestamptz NOT NULL,
    completed_at timestamptz NOT NULL,
    duration_ms integer GENERATED ALWAYS AS (
        least(floor(extract(epoch FROM completed_at - started_at) * 1000), 2147483647)::integer
    ) STORED,
    result jsonb,
    error_code text,
    error_message text,
    error_stack text,
    memory_used_mb integer,
    cpu_time_ms integer,
    metadata jsonb,
    PRIMARY KEY (job_id, attempt_number),
    CONSTRAINT execution_status_known CHECK (status IN (
        'completed', 'failed', 'timeout', 'cancelled', 'continued', 'snoozed', 'throttled', 'released', 'lost'
    )),
    CONSTRAINT execution_ended_after_start CHECK (completed_at >= started_at)
) PARTITION BY RANGE (job_id);
CREATE TABLE signalbox.job_executions_default PARTITION OF signalbox.job_executions DEFAULT WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05
);
-- Ids of the year 2109 and later: nearly all version 4 UUIDs. They have a partition of their own, because PostgreSQL
-- scans the default partition for each new one.
CREATE TABLE signalbox.job_executions_others PARTITION OF signalbox.job_executions
    FOR VALUES FROM ('04000000-0000-0000-0000-000000000000') TO (MAXVALUE) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05
);
COMMENT ON TABLE signalbox.job_executions IS 'One row for each execution that has ended, whether it counts as an attempt or not.';
-- For roll-ups by the hour; attempts come nearly in the order of their start.
CREATE INDEX executions_by_time ON signalbox.job_executions USING brin (started_at) WITH (pages_per_range = 32);

CREATE VIEW signalbox.attempts AS
SELECT job_id, attempt_number, job_type, lane, status, worker_id, execution_node, queued_at, started_at, completed_at,
    duration_ms, error_code, error_message, error_stack, memory_used_mb, cpu_time_ms, metadata
FROM signalbox.job_executions
UNION ALL
SELECT id, executions, job_type, lane, 'started', worker_id, execution_node, queued_at, started_at, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL
FROM signalbox.jobs WHERE status = 'running';
COMMENT ON VIEW signalbox.attempts IS 'The executions that have ended, and those that run (status started).';

CREATE TABLE signalbox.job_dependencies (
    job_id uuid NOT NULL REFERENCES signalbox.jobs ON DELETE CASCADE,
    depends_on_job_id uuid NOT NULL REFERENCES signalbox.jobs ON DELETE CASCADE,
    dependency_type text NOT NULL DEFAULT 'success',
    on_failure text NOT NULL DEFAULT 'fail',
    satisfied boolean NOT NULL DEFAULT false,
    satisfied_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    metadata jsonb,
    PRIMARY KEY (job_id, depends_on_job_id),
    CONSTRAINT dependency_type_known CHECK (dependency_type IN ('completion', 'success')),
    CONSTRAINT on_failure_known CHECK (on_failure IN ('fail', 'cancel', 'proceed')),
    CONSTRAINT no_dependency_on_itself CHECK (job_id <> depends_on_job_id),
    CONSTRAINT satisfied_at_iff_satisfied CHECK (satisfied = (satisfied_at IS NOT NULL))
);
COMMENT ON TABLE signalbox.job_dependencies IS
    'A job waits for another to succeed, or to end in any way. on_failure says what happens to it otherwise.';
-- Not only unsatisfied rows: prune_jobs searches here for the rows of each job that it deletes.
CREATE INDEX dependents_of_job ON signalbox.job_dependencies (depends_on_job_id);

CREATE TABLE signalbox.job_groups (
    id text PRIMARY KEY,
    total integer NOT NULL DEFAULT 0,
    completed integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    cancelled integer NOT NULL DEFAULT 0,
    sealed boolean NOT NULL DEFAULT false,
    completion_job_id uuid REFERENCES signalbox.jobs ON DELETE SET NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT group_counts_add_up CHECK (completed + failed + cancelled <= total)
);
COMMENT ON TABLE signalbox.job_groups IS
    'Jobs that are counted together. Once the group is sealed and all its jobs have ended, its completion job is released.';
-- A redriven completion job waits for its group again.
CREATE INDEX group_of_completion ON signalbox.job_groups (completion_job_id) WHERE completion_job_id IS NOT NULL;

CREATE TABLE signalbox.job_schedules (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name text NOT NULL,
    job_type text NOT NULL,
    payload_template jsonb NOT NULL DEFAULT '{}',
    options jsonb NOT NULL DEFAULT '{}',
    schedule_type text NOT NULL,
    cron_expression text,
    interval_ms bigint,
    run_at timestamptz,
    starts_at timestamptz,
    timezone text NOT NULL DEFAULT 'UTC',
    catch_up text NOT NULL DEFAULT 'latest',
    enabled boolean NOT NULL DEFAULT true,
    paused_at timestamptz,
    paused_by text,
    paused_reason text,
    last_run_at timestamptz,
    next_run_at timestamptz,
    run_count integer NOT NULL DEFAULT 0,
    missed_count integer NOT NULL DEFAULT 0,
    max_runs integer,
    expires_at timestamptz,
    error text,
    tenant text,
    created_by text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    metadata jsonb,
    CONSTRAINT schedule_named_once UNIQUE (name),
    CONSTRAINT schedule_type_known CHECK (schedule_type IN ('cron', 'interval', 'once')),
    CONSTRAINT schedule_says_when CHECK (
        (schedule_type = 'cron') = (cron_expression IS NOT NULL)
        AND (schedule_type = 'interval') = (interval_ms IS NOT NULL)
        AND (schedule_type = 'once') = (run_at IS NOT NULL)
    ),
    CONSTRAINT schedule_catch_up_known CHECK (catch_up IN ('all', 'latest', 'skip')),
    CONSTRAINT interval_positive CHECK (interval_ms >= 1000),
    CONSTRAINT paused_at_iff_not_enabled CHECK (enabled = (paused_at IS NULL)),
    CONSTRAINT runs_not_beyond_max CHECK (max_runs IS NULL OR run_count <= max_runs)
);
COMMENT ON COLUMN signalbox.job_schedules.starts_at IS
    'No job before this instant. Intervals count from here, or else from the creation of the schedule.';
COMMENT ON COLUMN signalbox.job_schedules.last_run_at IS 'The newest instant for which a job was submitted.';
COMMENT ON COLUMN signalbox.job_schedules.missed_count IS 'Instants without a job, skipped by the policy in catch_up.';
COMMENT ON COLUMN signalbox.job_schedules.error IS 'Why no job was submitted for next_run_at. Each minute tries again.';
CREATE INDEX schedules_due ON signalbox.job_schedules (next_run_at, id) WHERE enabled AND next_run_at IS NOT NULL;

-- Pauses and caps, which can change while jobs run. Few rows, read by each claim.
CREATE TABLE signalbox.job_caps (
    kind text NOT NULL,
    key text NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    max_running integer,
    rate integer,
    per_seconds integer,
    next_at timestamptz,
    by_default boolean NOT NULL DEFAULT false,
    reason text,
    changed_by text,
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, key),
    CONSTRAINT cap_kind_known CHECK (kind IN ('type', 'lane', 'tenant', 'key')),
    CONSTRAINT cap_not_negative CHECK (max_running >= 0),
    CONSTRAINT rate_per_time CHECK ((rate IS NULL) = (per_seconds IS NULL) AND rate >= 1 AND per_seconds >= 1)
);
COMMENT ON COLUMN signalbox.job_caps.by_default IS 'The cap that a job type declares; no operator has changed it.';
COMMENT ON COLUMN signalbox.job_caps.next_at IS 'When the rate lets the next job start.';
COMMENT ON TABLE signalbox.job_caps IS
    'Pauses, caps and rates of a job type, lane, tenant or submitter''s key (cap_key).';

CREATE TABLE signalbox.dead_letter_jobs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    source text NOT NULL DEFAULT 'job',
    original_job_id uuid,
    job_type text NOT NULL,
    payload jsonb NOT NULL,
    payload_version smallint NOT NULL DEFAULT 1,
    failure_reason text NOT NULL,
    error_type text,
    final_error_message text,
    final_error_stack text,
    total_attempts integer NOT NULL,
    execution_history jsonb,
    fingerprint text NOT NULL,
    severity text NOT NULL DEFAULT 'warning',
    status text NOT NULL DEFAULT 'pending',
    resolution_notes text,
    resolved_by text,
    resolved_at timestamptz,
    redriven_at timestamptz,
    redrives integer NOT NULL DEFAULT 0,
    reopened_at timestamptz,
    notified_at timestamptz,
    tenant text,
    first_failed_at timestamptz NOT NULL DEFAULT now(),
    last_failed_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    metadata jsonb,
    CONSTRAINT source_known CHECK (source IN ('job', 'message', 'invocation')),
    CONSTRAINT dead_letter_reason_known
        CHECK (failure_reason IN ('exhausted', 'permanent', 'timeout', 'lost', 'dependency', 'unreadable', 'undelivered')),
    CONSTRAINT dead_letter_status_known
        CHECK (status IN ('pending', 'investigating', 'resolved', 'ignored', 'redriven')),
    CONSTRAINT severity_known CHECK (severity IN ('info', 'warning', 'critical')),
    CONSTRAINT resolved_at_iff_resolved CHECK ((status IN ('resolved', 'ignored')) = (resolved_at IS NOT NULL))
);
COMMENT ON TABLE signalbox.dead_letter_jobs IS
    'One row for each job, message or invocation that failed permanently: why, how often, and how it was triaged.';
CREATE UNIQUE INDEX dead_letter_of_job ON signalbox.dead_letter_jobs (original_job_id) WHERE original_job_id IS NOT NULL;
CREATE INDEX dead_letters_by_status ON signalbox.dead_letter_jobs (status, last_failed_at);
-- For each new failure, finds the newest of its kind.
CREATE INDEX dead_letters_by_fingerprint ON signalbox.dead_letter_jobs (fingerprint, last_failed_at);
-- Dead letters that have not been reported to the operators yet: always few rows.
CREATE INDEX dead_letters_to_tell ON signalbox.dead_letter_jobs (last_failed_at)
    WHERE status = 'pending' AND notified_at IS NULL;

CREATE TABLE signalbox.job_metrics (
    period text NOT NULL,
    starts_at timestamptz NOT NULL,
    job_type text NOT NULL,
    lane text NOT NULL,
    begun bigint NOT NULL DEFAULT 0,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    timed_out bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    throttled bigint NOT NULL DEFAULT 0,
    others bigint NOT NULL DEFAULT 0,
    total_ms bigint NOT NULL DEFAULT 0,
    most_ms bigint NOT NULL DEFAULT 0,
    waited_ms bigint NOT NULL DEFAULT 0,
    durations integer[] NOT NULL,
    waits integer[] NOT NULL,
    most_memory_mb integer,
    cpu_ms bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (period, starts_at, job_type, lane),
    CONSTRAINT period_known CHECK (period IN ('minute', 'hour', 'day'))
);
COMMENT ON TABLE signalbox.job_metrics IS
    'Counts of ended attempts by time, type and lane. durations and waits are histograms of milliseconds, by powers of the square root of two.';

-- This uses executions_by_time, an index of starts: an attempt that ended in the period started in it or shortly
-- before, even if it was lost and rescued late. jobs_of_tenant finds a tenant's attempts, from the jobs created in the
-- period.
CREATE FUNCTION signalbox.count_attempts(
    since timestamptz, until timestamptz, bounds float8[], longest interval, of_tenant text DEFAULT NULL
) RETURNS TABLE (
    starts_at timestamptz, job_type text, lane text, begun bigint, completed bigint, failed bigint, timed_out bigint,
    cancelled bigint, throttled bigint, others bigint, total_ms bigint, most_ms bigint, waited_ms bigint,
    durations integer[], waits integer[], most_memory_mb integer, cpu_ms bigint
) LANGUAGE sql STABLE AS $$
WITH attempts AS (
    SELECT x.* FROM signalbox.attempts AS x
    WHERE of_tenant IS NULL AND x.started_at >= since - longest AND x.started_at < until
    UNION ALL
    SELECT x.* FROM signalbox.jobs AS j JOIN signalbox.attempts AS x ON x.job_id = j.id
    WHERE j.tenant = of_tenant AND j.id >= signalbox.first_id(since)
), seen AS MATERIALIZED (
    SELECT moment.starts_at, x.job_type, x.lane, moment.has_ended, x.status, x.duration_ms, x.memory_used_mb, x.cpu_time_ms,
        x.status IN ('completed', 'failed', 'timeout', 'continued') AS has_run,
        -- A released attempt's wait is not over.
        CASE WHEN x.status <> 'released'
            THEN greatest(0, extract(epoch FROM x.started_at - x.queued_at) * 1000)::bigint END AS waited_ms
    FROM attempts AS x
    CROSS JOIN LATERAL (VALUES
        (date_trunc('minute', x.started_at), false), (date_trunc('minute', x.completed_at), true)
    ) AS moment (starts_at, has_ended)
    WHERE moment.starts_at >= since AND moment.starts_at < until
), counted AS (
    SELECT starts_at, job_type, lane,
        count(*) FILTER (WHERE NOT has_ended) AS begun,
        count(*) FILTER (WHERE has_ended AND status = 'completed') AS completed,
        count(*) FILTER (WHERE has_ended AND status = 'failed') AS failed,
        count(*) FILTER (WHERE has_ended AND status = 'timeout') AS timed_out,
        count(*) FILTER (WHERE has_ended AND status = 'cancelled') AS cancelled,
        count(*) FILTER (WHERE has_ended AND status = 'throttled') AS throttled,
        count(*) FILTER (
            WHERE has_ended AND status NOT IN ('completed', 'failed', 'timeout', 'cancelled', 'throttled')
        ) AS others,
        coalesce(sum(duration_ms) FILTER (WHERE has_ended AND has_run), 0) AS total_ms,
        coalesce(max(duration_ms) FILTER (WHERE has_ended AND has_run), 0) AS most_ms,
        coalesce(sum(waited_ms) FILTER (WHERE has_ended), 0) AS waited_ms,
        max(memory_used_mb) FILTER (WHERE has_ended) AS most_memory_mb,
        coalesce(sum(cpu_time_ms) FILTER (WHERE has_ended), 0) AS cpu_ms
    FROM seen
    GROUP BY starts_at, job_type, lane
), spread AS (
    SELECT starts_at, job_type, lane, bucket, count(*) FILTER (WHERE of_durations) AS durations,
        count(*) FILTER (WHERE NOT of_durations) AS waits
    FROM (
        SELECT starts_at, job_type, lane, of_durations, greatest(1, width_bucket(milliseconds::float8, bounds)) AS bucket
        FROM seen CROSS JOIN LATERAL (VALUES
            (CASE WHEN has_run THEN duration_ms END, true), (waited_ms, false)
        ) AS measured (milliseconds, of_durations)
        WHERE has_ended AND milliseconds IS NOT NULL
    ) AS placed
    GROUP BY starts_at, job_type, lane, bucket
), histograms AS (
    SELECT c.starts_at, c.job_type, c.lane,
        array_agg(coalesce(s.durations, 0)::integer ORDER BY b.bucket) AS durations,
        array_agg(coalesce(s.waits, 0)::integer ORDER BY b.bucket) AS waits
    FROM counted AS c CROSS JOIN generate_series(1, cardinality(bounds)) AS b (bucket)
    LEFT JOIN spread AS s USING (starts_at, job_type, lane, bucket)
    GROUP BY c.starts_at, c.job_type, c.lane
)
SELECT starts_at, job_type, lane, begun, completed, failed, timed_out, cancelled, throttled, others, total_ms::bigint, most_ms,
    waited_ms::bigint, durations, waits, most_memory_mb, cpu_ms
FROM counted JOIN histograms USING (starts_at, job_type, lane)
$$;
COMMENT ON FUNCTION signalbox.count_attempts IS
    'Counts attempts by minute, type and lane: for roll_up_metrics to store, or live.';

-- Notifications in the application, by deliver_notification. No foreign key: a notification outlives its job.
CREATE TABLE signalbox.notifications (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant text,
    recipient text NOT NULL,
    notification_id text,
    subject text,
    body text NOT NULL,
    job_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    read_at timestamptz,
    CONSTRAINT notified_once_a_job UNIQUE (job_id, recipient),
    CONSTRAINT read_after_created CHECK (read_at >= created_at)
);
COMMENT ON TABLE signalbox.notifications IS
    'Notifications for the application to show to people. The application sets read_at.';
CREATE INDEX notifications_of_recipient ON signalbox.notifications (recipient, created_at DESC);
-- For prune_jobs, which searches for old rows; rows are inserted in the order of their time.
CREATE INDEX notifications_by_time ON signalbox.notifications USING brin (created_at);

CREATE TABLE signalbox.audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    actor text NOT NULL,
    action text NOT NULL,
    entity_type text NOT NULL,
    entity_id text NOT NULL,
    detail jsonb
);
COMMENT ON TABLE signalbox.audit_log IS 'Who changed jobs, schedules, caps and dead letters, and how; also archived dead letters.';
CREATE INDEX audit_of_entity ON signalbox.audit_log (entity_type, entity_id);

-- These are functions for the same reasons as claim_run: each step sees what the step before waited for, in one round
-- trip.

-- Return how many more jobs a cap lets run, without the places reserved for suspects; NULL without a cap.
CREATE FUNCTION signalbox.room_under_cap(cap signalbox.job_caps) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN cap.max_running IS NOT NULL THEN greatest(0, cap.max_running - (
        SELECT count(*) FROM signalbox.jobs AS j
        WHERE j.status = 'running' AND cap.key = CASE cap.kind
            WHEN 'type' THEN j.job_type WHEN 'lane' THEN j.lane WHEN 'tenant' THEN j.tenant ELSE j.cap_key END
    ) - (
        SELECT count(*) FROM signalbox.jobs AS j
        WHERE j.status = 'pending' AND j.held_since IS NOT NULL AND j.held_by IS NULL AND cap.key = CASE cap.kind
            WHEN 'type' THEN j.job_type WHEN 'lane' THEN j.lane WHEN 'tenant' THEN j.tenant ELSE j.cap_key END
    ))::integer END
$$;

-- Return how many may start now, by cap and rate; NULL if nothing limits them. A rate has one place each interval. A
-- worker that is a moment late may use the places of the last quarter of a second.
CREATE FUNCTION signalbox.room_of(cap signalbox.job_caps) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT least(signalbox.room_under_cap(cap), CASE WHEN cap.rate IS NOT NULL THEN greatest(0, 1 + floor(
        extract(epoch FROM clock_timestamp() - greatest(cap.next_at, clock_timestamp() - interval '250 ms'))
        * cap.rate / cap.per_seconds
    ))::integer END)
$$;

-- Return a lane's queued jobs whose messages are late, the oldest of each priority. The index finds them past jobs that
-- are to be sent later.
CREATE FUNCTION signalbox.late_jobs(of_lane text, late interval, within interval, most_each integer)
RETURNS TABLE (id uuid, job_type text, tenant text, priority smallint, send_at timestamptz, suspect boolean)
LANGUAGE sql STABLE AS $$
    SELECT w.* FROM generate_series(1, 10) AS p (priority)
    CROSS JOIN LATERAL (
        SELECT j.id, j.job_type, j.tenant, j.priority, j.send_at,
            coalesce(j.error_details ->> 'type' = 'WorkerLost', false)
        FROM signalbox.jobs AS j
        WHERE j.lane = of_lane AND j.priority = p.priority AND j.send_at <= clock_timestamp() + within
            AND ((j.status = 'queued' AND j.queued_at <= clock_timestamp() - late)
                -- A suspect, for which a place is reserved.
                OR (j.status = 'pending' AND j.held_since <= clock_timestamp() - late AND j.send_at <= clock_timestamp()))
        ORDER BY j.send_at LIMIT most_each
    ) AS w
$$;

-- Change the state of queued jobs among these that a pause, a cap or a rate holds back; the rest may be claimed.
CREATE FUNCTION signalbox.hold_jobs(wanted uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found signalbox.job_caps[];
    cap signalbox.job_caps;
    room integer;
    begun integer;
BEGIN
    -- Locked in one order, so that two workers can't deadlock. The worker that counts holds the row's lock, so that its
    -- count stays true until it has claimed.
    found := ARRAY(
        SELECT c FROM signalbox.job_caps AS c
        WHERE (c.kind, c.key) IN (
            SELECT k.kind, k.key FROM signalbox.jobs AS j
            CROSS JOIN LATERAL (
                VALUES ('type', j.job_type), ('lane', j.lane), ('tenant', j.tenant), ('key', j.cap_key)
            ) AS k (kind, key)
            WHERE j.id = ANY (wanted) AND j.status = 'queued'
        )
        ORDER BY c.kind, c.key
        FOR UPDATE
    );
    -- Rates come last, so that a job that a cap holds uses no place of a rate.
    FOR cap IN SELECT (c).* FROM unnest(found) AS c ORDER BY (c).rate IS NOT NULL, (c).kind, (c).key LOOP
        IF cap.paused THEN
            UPDATE signalbox.jobs AS j SET status = 'paused', paused_by = NULL, send_at = NULL, updated_at = now()
            WHERE j.id = ANY (wanted) AND j.status = 'queued' AND cap.key = CASE cap.kind
                WHEN 'type' THEN j.job_type WHEN 'lane' THEN j.lane WHEN 'tenant' THEN j.tenant ELSE j.cap_key END;
            CONTINUE;
        END IF;
        room := signalbox.room_of(cap);
        CONTINUE WHEN room IS NULL;
        -- Jobs beyond the room wait, the less urgent and the later ones first; no attempt is spent.
        WITH matching AS (
            SELECT j.id, row_number() OVER (ORDER BY j.priority, j.id) AS place,
                -- A suspect starts alone, while held jobs start beside others when a job ends. So a suspect is not
                -- held, but tries again, and the next place is reserved for it (room_under_cap).
                CASE WHEN j.error_details ->> 'type' = 'WorkerLost' THEN now() + interval '5 s' END AS again
            FROM signalbox.jobs AS j
            WHERE j.id = ANY (wanted) AND j.status = 'queued' AND cap.key = CASE cap.kind
                WHEN 'type' THEN j.job_type WHEN 'lane' THEN j.lane WHEN 'tenant' THEN j.tenant ELSE j.cap_key END
        ), held AS (
            UPDATE signalbox.jobs AS j
            SET status = 'pending', updated_at = now(), send_at = again, scheduled_for = coalesce(again, j.scheduled_for),
                held_by = CASE WHEN again IS NULL THEN cap.kind || ':' || cap.key END,
                held_since = coalesce(j.held_since, now())
            FROM matching WHERE j.id = matching.id AND matching.place > room
        )
        SELECT least(count(*), room) INTO begun FROM matching;
        IF cap.rate IS NOT NULL AND begun > 0 THEN
            UPDATE signalbox.job_caps AS c
            SET next_at = greatest(c.next_at, clock_timestamp() - interval '250 ms')
                + begun * c.per_seconds * interval '1 s' / c.rate
            WHERE c.kind = cap.kind AND c.key = cap.key;
        END IF;
    END LOOP;
END $$;

-- Return which of these caps hold jobs, the seconds until one may start, and whether its time-out fits. The seconds are
-- NULL if all places are taken; `fits` is NULL if all of these jobs are of other lanes. The settings force the order of
-- jobs_held, even if the planner misjudges a table that has just filled: one index lookup for each cap, no matter how
-- many jobs it holds.
CREATE FUNCTION signalbox.find_held(caps text[], lanes text[], longest_ms integer)
RETURNS TABLE (cap text, seconds float8, fits boolean) LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
    SELECT w.name, CASE WHEN NOT c.paused IS TRUE AND coalesce(signalbox.room_under_cap(c), 1) > 0
        THEN greatest(0, coalesce(extract(epoch FROM c.next_at - clock_timestamp()), 0))::float8 END,
        held.timeout_ms <= longest_ms
    FROM unnest(caps) AS w (name)
    LEFT JOIN signalbox.job_caps AS c
        ON c.kind = split_part(w.name, ':', 1) AND c.key = substr(w.name, strpos(w.name, ':') + 1)
    LEFT JOIN LATERAL (
        SELECT j.timeout_ms FROM signalbox.jobs AS j WHERE j.held_by = w.name AND j.lane = ANY (lanes)
        ORDER BY j.priority, j.id LIMIT 1
    ) AS held ON true
    LEFT JOIN LATERAL (
        SELECT true AS some FROM signalbox.jobs AS j WHERE j.held_by = w.name AND held.timeout_ms IS NULL
        ORDER BY j.priority, j.id LIMIT 1
    ) AS elsewhere ON true
    WHERE held.timeout_ms IS NOT NULL OR elsewhere.some;
$$;

-- Queue the next held jobs of these caps (named as in held_by), as many as there is room for; return which. This is not
-- done under the caps' locks: the claim that starts these jobs takes the locks, and holds jobs beyond the room again.
CREATE FUNCTION signalbox.release_held(
    caps text[], places integer, lanes text[], longest_ms integer, suspects boolean
) RETURNS uuid[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
    name text;
    room integer;
    released uuid[] := '{}';
    found uuid[];
BEGIN
    FOREACH name IN ARRAY caps LOOP
        SELECT signalbox.room_of(c) INTO room FROM signalbox.job_caps AS c
        WHERE c.kind = split_part(name, ':', 1) AND c.key = substr(name, strpos(name, ':') + 1);
        WITH next AS (
            SELECT j.id FROM signalbox.jobs AS j WHERE j.held_by = name AND j.lane = ANY (lanes) AND j.timeout_ms <= longest_ms
                AND (suspects OR (j.error_details ->> 'type') IS DISTINCT FROM 'WorkerLost')
            ORDER BY j.priority, j.id LIMIT least(room, places) FOR NO KEY UPDATE SKIP LOCKED
        ), changed AS (
            UPDATE signalbox.jobs AS j
            SET status = 'queued', held_by = NULL, queued_at = clock_timestamp(), updated_at = clock_timestamp(),
                send_at = clock_timestamp()  -- it has no message: if no claim starts it, dispatch_jobs sends it
            FROM next WHERE j.id = next.id
            RETURNING j.id
        )
        SELECT array_agg(id) INTO found FROM changed;
        released := released || found;
    END LOOP;
    RETURN released;
END $$;

CREATE FUNCTION signalbox.claim_jobs(
    wanted uuid[], token uuid, by_worker text, node text, lease interval,
    longest_ms integer DEFAULT 2147483647, suspects boolean DEFAULT true,
    caps text[] DEFAULT '{}', places integer DEFAULT 1, lanes text[] DEFAULT '{high,normal,low}'
) RETURNS TABLE (
    id uuid, job_type text, lane text, priority smallint, payload jsonb, payload_version smallint, config jsonb,
    cursor jsonb, tenant text, job_group text, correlation_id text, attempt smallint, execution integer, max_attempts smallint,
    timeout_ms integer, queued_at timestamptz, created_at timestamptz, cancel_requested_at timestamptz, throttles integer,
    throttled_since timestamptz, pieces integer, first_started_at timestamptz, cap_key text, capped boolean
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET lock_timeout = '2s'  -- as for end_attempts
AS $$
#variable_conflict use_column
DECLARE
    has_caps boolean := EXISTS (SELECT FROM signalbox.job_caps);
    looked_at text[];
    released uuid[] := '{}';
BEGIN
    -- A retry's message arrives when its time has come, while the job still waits. It counts as queued since then, or
    -- since its release.
    UPDATE signalbox.jobs AS j
    SET status = 'queued', queued_at = least(clock_timestamp(), greatest(j.scheduled_for, j.updated_at)),
        updated_at = clock_timestamp()
    WHERE j.id = ANY (wanted) AND j.status = 'pending' AND j.unmet_dependencies = 0
        AND (j.scheduled_for IS NULL OR j.scheduled_for <= clock_timestamp() + interval '1 s') AND j.held_by IS NULL;
    -- The message of a held job says that there may be room for the next held job, whichever it is.
    SELECT array_agg(j.held_by) INTO looked_at FROM signalbox.jobs AS j
    WHERE j.id = ANY (wanted) AND j.status = 'pending' AND j.held_by IS NOT NULL;
    LOOP
        IF looked_at IS NOT NULL OR caps <> '{}' THEN
            released := signalbox.release_held(
                ARRAY(SELECT DISTINCT unnest(caps || looked_at)), greatest(places, cardinality(looked_at)), lanes,
                longest_ms, suspects
            );
            wanted := wanted || released;
        END IF;
        IF has_caps THEN
            wanted := ARRAY(
                SELECT j.id FROM signalbox.jobs AS j
                WHERE j.id = ANY (wanted) AND j.status = 'queued' AND j.timeout_ms <= longest_ms
                    AND (suspects OR (j.error_details ->> 'type') IS DISTINCT FROM 'WorkerLost')
            );
            PERFORM signalbox.hold_jobs(wanted);
        END IF;
        -- If another cap now holds all of these, the jobs behind them may start.
        EXIT WHEN released = '{}' OR NOT has_caps
            OR EXISTS (SELECT FROM signalbox.jobs AS j WHERE j.id = ANY (wanted) AND j.status = 'queued');
    END LOOP;
    RETURN QUERY
    UPDATE signalbox.jobs AS j
    SET status = 'running', attempts = j.attempts + 1, executions = j.executions + 1, lease_token = token,
        lease_expires_at = clock_timestamp() + lease, worker_id = by_worker, execution_node = node,
        started_at = clock_timestamp(), first_started_at = coalesce(j.first_started_at, clock_timestamp()),
        health_status = 'HEALTHY', send_at = NULL, sends = 0, held_since = NULL, updated_at = clock_timestamp()
    WHERE j.id = ANY (wanted) AND j.status = 'queued' AND j.timeout_ms <= longest_ms
        AND (suspects OR (j.error_details ->> 'type') IS DISTINCT FROM 'WorkerLost')
    RETURNING j.id, j.job_type, j.lane, j.priority, j.payload, j.payload_version, j.config, j.cursor, j.tenant, j.job_group,
        j.correlation_id, j.attempts, j.executions, j.max_attempts, j.timeout_ms, j.queued_at, j.created_at,
        j.cancel_requested_at, j.throttles, j.throttled_since, j.pieces, j.first_started_at, j.cap_key,
        has_caps AND EXISTS (
            SELECT FROM (
                VALUES ('type', j.job_type), ('lane', j.lane), ('tenant', j.tenant), ('key', j.cap_key)
            ) AS k (kind, key)
            JOIN signalbox.job_caps AS l ON l.kind = k.kind AND l.key = k.key
            WHERE l.max_running IS NOT NULL OR l.rate IS NOT NULL
        );
END $$;
COMMENT ON FUNCTION signalbox.claim_jobs IS
    'Claims the queued ones among these jobs: each gets a lease and an attempt. Skips jobs with a longer time-out, and suspects unless asked for them.';

-- Resolve the dependents of ended jobs, and their dependents in turn: release, cancel or fail them, level by level.
-- Return all of them; the pending ones are released and may be sent. `counted`: the groups of the ended jobs have
-- counted them already.
CREATE FUNCTION signalbox.resolve_dependents(ended uuid[], counted boolean DEFAULT false) RETURNS uuid[] LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off  -- as for end_attempts
AS $$
DECLARE
    -- A loop instead of recursion: a chain of a thousand jobs would be deeper than the server's stack.
    wave uuid[] := ended;
    news uuid[] := CASE WHEN counted THEN '{}' ELSE ended END;
    followers uuid[] := '{}';
    freed uuid[];
    met uuid[];
    doomed uuid[];
    dropped uuid[];
    moment timestamptz;
BEGIN
    PERFORM signalbox.lock_dependents(ended, news);
    -- Read the clock only after the locks: changes that others made during the wait must not be later than this.
    moment := clock_timestamp();
    LOOP
        WITH judged AS (
            SELECT d.job_id, d.depends_on_job_id, d.on_failure,
                p.status = 'completed' OR d.dependency_type = 'completion' OR d.on_failure = 'proceed' AS may_go,
                -- An ended job is not ended again. If it is redriven, it need not wait for parents that have succeeded.
                c.completed_at IS NULL AND c.unmet_dependencies > 0 AS waits
            FROM signalbox.job_dependencies AS d
            JOIN signalbox.jobs AS p ON p.id = d.depends_on_job_id
            JOIN signalbox.jobs AS c ON c.id = d.job_id
            WHERE d.depends_on_job_id = ANY (wave) AND NOT d.satisfied AND p.completed_at IS NOT NULL
        ), marked AS (
            UPDATE signalbox.job_dependencies AS d SET satisfied = true, satisfied_at = moment
            FROM judged WHERE d.job_id = judged.job_id AND d.depends_on_job_id = judged.depends_on_job_id AND judged.may_go
        )
        SELECT array_agg(job_id) FILTER (WHERE may_go),
            array_agg(DISTINCT job_id) FILTER (WHERE NOT may_go AND on_failure = 'fail'),
            array_agg(DISTINCT job_id) FILTER (WHERE NOT may_go AND on_failure = 'cancel')
        INTO met, doomed, dropped FROM judged WHERE waits;
        WITH lowered AS (
            UPDATE signalbox.jobs AS j
            SET unmet_dependencies = greatest(0, j.unmet_dependencies - n.count), updated_at = moment,
                send_at = CASE WHEN j.status = 'pending' AND j.unmet_dependencies <= n.count
                    THEN coalesce(j.scheduled_for, moment) END
            FROM (SELECT id, count(*) FROM unnest(met) AS id GROUP BY id) AS n
            WHERE j.id = n.id
            RETURNING j.id, j.send_at
        )
        SELECT array_agg(id) INTO freed FROM lowered WHERE send_at <= moment;
        followers := followers || freed;
        -- If one parent's end cancels a job and another's fails it, cancel it: then nobody needs to triage it.
        doomed := ARRAY(SELECT unnest(doomed) EXCEPT SELECT unnest(dropped));
        UPDATE signalbox.jobs SET status = 'cancelled', completed_at = moment, updated_at = moment, send_at = NULL,
            error_details = signalbox.dependency_failed()
        WHERE id = ANY (dropped);
        IF doomed <> '{}' THEN
            PERFORM signalbox.fail_dependents(doomed, moment);
        END IF;
        wave := coalesce(dropped, '{}') || doomed;
        EXIT WHEN wave = '{}';
        news := news || wave;
        followers := followers || wave;
    END LOOP;
    RETURN followers || signalbox.count_ended(news);
END $$;

CREATE FUNCTION signalbox.dependency_failed() RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT '{"type": "DependencyFailed", "message": "a job that it depends on did not succeed"}'::jsonb
$$;

-- Lock everything that settling may change: first jobs, then groups, each in the order of their ids, as submitting
-- does. Otherwise two workers, or a worker and a submit, could deadlock. This includes all descendants of jobs that may
-- have to fail, and their groups.
CREATE FUNCTION signalbox.lock_dependents(ended uuid[], news uuid[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off  -- as for end_attempts
AS $$
DECLARE
    failing boolean := EXISTS (SELECT FROM signalbox.jobs WHERE id = ANY (ended) AND (status || '') <> 'completed');
    waiting uuid[];
BEGIN
    WITH RECURSIVE dependents (id) AS (
        SELECT d.job_id FROM signalbox.job_dependencies AS d WHERE d.depends_on_job_id = ANY (ended) AND NOT d.satisfied
        UNION
        SELECT d.job_id FROM dependents AS w JOIN signalbox.job_dependencies AS d ON d.depends_on_job_id = w.id
        WHERE failing AND NOT d.satisfied
    )
    SELECT array_agg(id) INTO waiting FROM dependents;
    IF waiting IS NOT NULL THEN
        PERFORM FROM signalbox.jobs WHERE id = ANY (waiting) ORDER BY id FOR NO KEY UPDATE;
    END IF;
    PERFORM FROM signalbox.job_groups WHERE id = ANY (ARRAY(
        SELECT job_group FROM signalbox.jobs
        WHERE id = ANY (news || CASE WHEN failing THEN waiting END) AND job_group IS NOT NULL
    )) ORDER BY id FOR NO KEY UPDATE;
END $$;

-- Fail these jobs. Each gets a dead letter, but no attempt, because it never started.
CREATE FUNCTION signalbox.fail_dependents(doomed uuid[], moment timestamptz) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off  -- as for end_attempts
AS $$
DECLARE
    why jsonb := signalbox.dependency_failed();
BEGIN
    UPDATE signalbox.jobs SET status = 'failed', unmet_dependencies = 0, paused_by = NULL, send_at = NULL,
        error_details = why, completed_at = moment, updated_at = moment
    WHERE id = ANY (doomed);
    PERFORM signalbox.add_dead_letters((
        SELECT jsonb_agg(jsonb_build_object(
            'id', id, 'status', 'failed', 'reason', 'dependency', 'error', why,
            'fingerprint', md5(job_type || ' DependencyFailed')
        )) FROM signalbox.jobs WHERE id = ANY (doomed)
    ), doomed);
END $$;

-- Count these jobs in their groups; return the completion jobs that may be sent.
CREATE FUNCTION signalbox.count_ended(ended uuid[]) RETURNS uuid[] LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off  -- as for end_attempts
AS $$
DECLARE
    grown text[];
BEGIN
    WITH changed AS (
        UPDATE signalbox.job_groups AS g
        SET completed = g.completed + n.completed, failed = g.failed + n.failed, cancelled = g.cancelled + n.cancelled
        FROM (
            SELECT job_group, count(*) FILTER (WHERE status = 'completed') AS completed,
                count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE status = 'cancelled') AS cancelled
            FROM signalbox.jobs WHERE id = ANY (ended) AND job_group IS NOT NULL GROUP BY job_group
        ) AS n
        WHERE g.id = n.job_group
        RETURNING g.id
    )
    SELECT array_agg(id ORDER BY id) INTO grown FROM changed;
    RETURN ARRAY(
        SELECT job FROM (SELECT signalbox.finish_group(g) AS job FROM unnest(grown) AS g OFFSET 0) AS f WHERE job IS NOT NULL
    );
END $$;

-- Finish a group once it is sealed and all its jobs have ended. Its completion job receives the counts, as "group" in
-- its config, and need not wait for the group any longer. Return that job if it may be sent.
CREATE FUNCTION signalbox.finish_group(which text) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    finished signalbox.job_groups;
    released uuid;
BEGIN
    UPDATE signalbox.job_groups SET finished_at = clock_timestamp()
    WHERE id = which AND sealed AND finished_at IS NULL AND completed + failed + cancelled = total
    RETURNING * INTO finished;
    UPDATE signalbox.jobs
    SET unmet_dependencies = unmet_dependencies - 1, updated_at = clock_timestamp(),
        send_at = CASE WHEN status = 'pending' AND unmet_dependencies = 1 THEN coalesce(scheduled_for, clock_timestamp()) END,
        config = coalesce(config, '{}') || jsonb_build_object('group', jsonb_build_object(
            'id', finished.id, 'total', finished.total, 'completed', finished.completed, 'failed', finished.failed,
            'cancelled', finished.cancelled
        ))
    -- A group ends a second time if one of its jobs was redriven. Its completion job no longer waits then.
    WHERE id = finished.completion_job_id AND status IN ('pending', 'paused') AND unmet_dependencies > 0
    RETURNING CASE WHEN send_at <= clock_timestamp() THEN id END INTO released;
    RETURN released;
END $$;

-- Work that submits leave for their commit, so that a long transaction locks no rows of parents, groups and caps: a
-- worker that ends such a job would wait for it. Only the transaction that wrote a row ever sees it.
CREATE TABLE signalbox.job_submits (
    tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
    parents uuid[] NOT NULL,
    groups jsonb NOT NULL,
    caps jsonb NOT NULL
);
COMMENT ON TABLE signalbox.job_submits IS
    'Work that the commit of a submitting transaction does for its jobs. Empty outside of such transactions.';
CREATE INDEX submits_of_transaction ON signalbox.job_submits (tx);

-- Finish the submits of this transaction: store the caps that their types declare, join groups, and resolve parents
-- that may have ended in the meantime. The order is first jobs, then groups, as in settling.
CREATE FUNCTION signalbox.finish_submits() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    parents uuid[];
    joins jsonb;
    caps jsonb;
    joined text[];
    closed text;
BEGIN
    WITH mine AS (DELETE FROM signalbox.job_submits AS s WHERE s.tx = pg_current_xact_id() RETURNING s.*)
    SELECT ARRAY(SELECT DISTINCT unnest(m.parents) FROM mine AS m),
        (SELECT jsonb_object_agg(g.id, g.count) FROM (
            SELECT j.key AS id, sum(j.value::integer) AS count FROM mine AS m, jsonb_each_text(m.groups) AS j GROUP BY j.key
        ) AS g),
        (SELECT jsonb_agg(c) FROM mine AS m, jsonb_array_elements(m.caps) AS c)
    INTO parents, joins, caps;
    -- A cap that exists already stays as it is.
    INSERT INTO signalbox.job_caps (kind, key, max_running, rate, per_seconds, by_default)
    SELECT r.kind, r.key, r.max_running, r.rate, r.per_seconds, true FROM jsonb_to_recordset(caps) AS r (
        kind text, key text, max_running integer, rate integer, per_seconds integer
    )
    ORDER BY r.kind, r.key
    ON CONFLICT DO NOTHING;
    -- The lock keeps parents from ending between here and the commit. Such an end would be missed, and the job would
    -- never be released.
    PERFORM FROM signalbox.jobs WHERE id = ANY (parents) ORDER BY id FOR SHARE;
    WITH grown AS (
        INSERT INTO signalbox.job_groups AS known (id, total)
        SELECT g.key, g.value::integer FROM jsonb_each_text(joins) AS g ORDER BY g.key
        ON CONFLICT (id) DO UPDATE SET total = known.total + excluded.total WHERE NOT known.sealed
        RETURNING known.id
    )
    SELECT array_agg(id) INTO joined FROM grown;
    SELECT min(g.id) INTO closed FROM jsonb_object_keys(joins) AS g (id) WHERE g.id <> ALL (coalesce(joined, '{}'));
    IF closed IS NOT NULL THEN
        RAISE EXCEPTION 'group ''%'' is sealed: it takes no further jobs', closed
            USING ERRCODE = 'check_violation', CONSTRAINT = 'group_takes_jobs';
    END IF;
    PERFORM signalbox.resolve_dependents(ARRAY(
        SELECT id FROM signalbox.jobs WHERE id = ANY (parents) AND completed_at IS NOT NULL
    ), counted => true);
END $$;

CREATE FUNCTION signalbox.finish_submits_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM signalbox.finish_submits();
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON signalbox.job_submits DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION signalbox.finish_submits_at_commit();

CREATE TABLE signalbox.job_types (
    name text PRIMARY KEY,
    pack text NOT NULL,
    summary text NOT NULL,
    version smallint NOT NULL,
    category text NOT NULL,
    lane text,
    lanes text[] NOT NULL,
    max_attempts smallint NOT NULL,
    timeout_ms integer NOT NULL,
    cap jsonb,
    subject text,
    correlation text,
    payload_schema jsonb NOT NULL,
    has_validators boolean NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE signalbox.job_types IS 'The job types that this stack runs. The migrator writes them with each deploy, and submit_job checks against them.';
COMMENT ON COLUMN signalbox.job_types.lane IS 'The lane of all its jobs; null: their priority decides.';
COMMENT ON COLUMN signalbox.job_types.lanes IS 'The lanes that a submit may choose.';
COMMENT ON COLUMN signalbox.job_types.subject IS 'The field of the payload that becomes subject_id.';
COMMENT ON COLUMN signalbox.job_types.has_validators IS
    'A payload that fits the schema may still be refused at the claim; then the job fails permanently.';

-- Return the faults of a value by its JSON schema. It covers what pydantic writes: references, types, required and
-- unknown fields, alternatives, enums, lengths and ranges. Each fault names its field; none quotes a value.
CREATE FUNCTION signalbox.schema_faults(schema jsonb, value jsonb, place text DEFAULT '', root jsonb DEFAULT NULL)
RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    here constant text := CASE WHEN place = '' THEN 'the payload' ELSE format('field ''%s''', place) END;
    kind constant text := jsonb_typeof(value);
    faults text[] := '{}';
    alternatives constant jsonb := coalesce(schema -> 'anyOf', schema -> 'oneOf');
    size integer;
    number numeric;
BEGIN
    root := coalesce(root, schema);
    IF schema ? '$ref' THEN
        RETURN signalbox.schema_faults(root #> string_to_array(substr(schema ->> '$ref', 3), '/'), value, place, root);
    END IF;
    IF alternatives IS NOT NULL THEN
        IF EXISTS (
            SELECT FROM jsonb_array_elements(alternatives) AS a (one)
            WHERE signalbox.schema_faults(a.one, value, place, root) = '{}'
        ) THEN
            RETURN '{}';
        END IF;
        RETURN ARRAY[here || ' is none of what it may be'];
    END IF;
    IF (schema ? 'const' AND value <> schema -> 'const')
        OR (schema ? 'enum' AND NOT EXISTS (SELECT FROM jsonb_array_elements(schema -> 'enum') AS e (one) WHERE e.one = value)) THEN
        RETURN ARRAY[format('%s is not %s', here, coalesce(schema ->> 'const', 'one of ' || (schema ->> 'enum')))];
    END IF;
    IF schema ? 'type' AND NOT (CASE schema ->> 'type'
        WHEN 'integer' THEN kind = 'number' AND (value #>> '{}')::numeric % 1 = 0 ELSE schema ->> 'type' = kind END) THEN
        RETURN ARRAY[format('%s is no %s', here, schema ->> 'type')];
    END IF;
    IF kind = 'string' THEN
        size := char_length(value #>> '{}');
        IF size < (schema ->> 'minLength')::integer OR size > (schema ->> 'maxLength')::integer THEN
            faults := faults || format('%s has %s characters', here, size);
        END IF;
    ELSIF kind = 'number' THEN
        number := (value #>> '{}')::numeric;
        IF number < (schema ->> 'minimum')::numeric OR number > (schema ->> 'maximum')::numeric
            OR number <= (schema ->> 'exclusiveMinimum')::numeric OR number >= (schema ->> 'exclusiveMaximum')::numeric THEN
            faults := faults || (here || ' is out of its range');
        END IF;
    ELSIF kind = 'array' THEN
        size := jsonb_array_length(value);
        IF size < (schema ->> 'minItems')::integer OR size > (schema ->> 'maxItems')::integer THEN
            faults := faults || format('%s has %s items', here, size);
        END IF;
        faults := faults || ARRAY(
            SELECT unnest(signalbox.schema_faults(schema -> 'items', e.item, concat_ws('.', nullif(place, ''), e.at - 1), root))
            FROM jsonb_array_elements(value) WITH ORDINALITY AS e (item, at) WHERE jsonb_typeof(schema -> 'items') = 'object'
        );
    ELSIF kind = 'object' THEN
        faults := faults || ARRAY(
            SELECT format('field ''%s'' is missing', concat_ws('.', nullif(place, ''), r.name))
            FROM jsonb_array_elements_text(schema -> 'required') AS r (name) WHERE NOT value ? r.name
        ) || ARRAY(
            SELECT unnest(CASE
                WHEN schema -> 'properties' ? f.name
                    THEN signalbox.schema_faults(schema -> 'properties' -> f.name, f.part, f.path, root)
                WHEN schema -> 'additionalProperties' = 'false' THEN ARRAY[format('field ''%s'' is not known', f.path)]
                WHEN jsonb_typeof(schema -> 'additionalProperties') = 'object'
                    THEN signalbox.schema_faults(schema -> 'additionalProperties', f.part, f.path, root)
            END)
            FROM (
                SELECT e.name, e.part, concat_ws('.', nullif(place, ''), e.name) AS path FROM jsonb_each(value) AS e (name, part)
            ) AS f
        );
    END IF;
    RETURN faults;
END $$;

-- Store a job in the caller's transaction; return its id, or that of the first job with the idempotency key. It has no
-- message: dispatch_jobs sends it with its next run.
CREATE FUNCTION signalbox.submit_job(job_type text, payload jsonb DEFAULT '{}', options jsonb DEFAULT '{}')
RETURNS uuid LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    known signalbox.job_types;
    given record;
    fault text;
    in_lane text;
    due timestamptz;
    own_cap text;
    job uuid;
    known_options constant text[] := '{idempotency_key, priority, lane, delay_seconds, at, tenant, cap_key, group, parent_id,
        max_attempts, timeout_seconds, name, correlation_id, tags, metadata, created_by}';
BEGIN
    SELECT * INTO known FROM signalbox.job_types AS t WHERE t.name = submit_job.job_type;
    IF known.name IS NULL THEN
        RAISE EXCEPTION 'job type ''%'' is not registered: the table signalbox.job_types lists those that are', submit_job.job_type
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF jsonb_typeof(options) <> 'object' THEN
        RAISE EXCEPTION 'options must be a JSON object' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO given FROM jsonb_to_record(options) AS o (
        idempotency_key text, priority smallint, lane text, delay_seconds float8, at timestamptz, tenant text, cap_key text,
        "group" text, parent_id uuid, max_attempts smallint, timeout_seconds float8, name text, correlation_id text,
        tags text[], metadata jsonb, created_by text
    );
    given.priority := coalesce(given.priority, 5);
    in_lane := coalesce(given.lane, known.lane,
        CASE WHEN given.priority <= 3 THEN 'high' WHEN given.priority <= 7 THEN 'normal' ELSE 'low' END);
    due := coalesce(given.at, clock_timestamp() + given.delay_seconds * interval '1 s');
    fault := CASE
        WHEN options - known_options <> '{}' THEN format('there is no option ''%s''; there are %s',
            (SELECT min(o.name) FROM jsonb_object_keys(options - known_options) AS o (name)), array_to_string(known_options, ', '))
        WHEN given.priority NOT BETWEEN 1 AND 10 THEN format('priority %s is not between 1 (first) and 10', given.priority)
        WHEN in_lane <> ALL (known.lanes) THEN
            format('it may not run in lane ''%s''; allowed are %s', in_lane, array_to_string(known.lanes, ', '))
        WHEN given.at IS NOT NULL AND given.delay_seconds IS NOT NULL THEN 'give delay_seconds or at, and not both'
        WHEN given.delay_seconds NOT BETWEEN 0 AND 31622400 THEN 'delay_seconds is not between 0 and a year'
        WHEN given.max_attempts NOT BETWEEN 1 AND 100 THEN format('max_attempts %s is not between 1 and 100', given.max_attempts)
        WHEN given.timeout_seconds <= 0 OR given.timeout_seconds > CASE in_lane WHEN 'heavy' THEN 870 ELSE 330 END THEN
            format('a time-out of %s s is not above zero and within the time of lane ''%s''', given.timeout_seconds, in_lane)
        WHEN octet_length(payload::text) > 200000 THEN
            'its payload has more than 200 kB; put the data into S3 and their key into the payload'
    END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'job of type ''%'': %', known.name, fault USING ERRCODE = 'invalid_parameter_value';
    END IF;
    fault := array_to_string(signalbox.schema_faults(known.payload_schema, payload), '; ');
    IF fault <> '' THEN
        RAISE EXCEPTION 'payload of job type ''%'' refused: %', known.name, fault USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- If a cap counts by a value of the payload, only the type's own code can compute the key. dispatch_jobs does that
    -- before it sends the job.
    own_cap := CASE WHEN given.cap_key IS NULL AND known.cap ->> 'per' = 'tenant'
        THEN left(known.name || ' ' || coalesce(given.tenant, '-'), 200) END;
    LOOP
        INSERT INTO signalbox.jobs (
            job_type, job_name, job_category, lane, priority, status, payload, payload_version, tenant, cap_key, subject_id,
            correlation_id, idempotency_key, job_group, parent_job_id, tags, metadata, created_by, max_attempts, timeout_ms,
            scheduled_for, send_at
        )
        VALUES (
            known.name, given.name, known.category, in_lane, given.priority, 'pending', payload, known.version, given.tenant,
            coalesce(given.cap_key, own_cap), payload ->> known.subject,
            coalesce(given.correlation_id, payload ->> known.correlation), given.idempotency_key, given."group",
            given.parent_id, given.tags, given.metadata, given.created_by,
            coalesce(given.max_attempts, known.max_attempts),
            coalesce(round(given.timeout_seconds * 1000), known.timeout_ms), due, coalesce(due, clock_timestamp())
        )
        ON CONFLICT (job_type, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
        RETURNING id INTO job;
        IF job IS NOT NULL THEN
            EXIT;
        END IF;
        SELECT j.id INTO job FROM signalbox.jobs AS j
        WHERE j.job_type = known.name AND j.idempotency_key = given.idempotency_key;
        IF job IS NOT NULL THEN
            RETURN job;
        END IF;  -- the first job has just been pruned: the key is free
    END LOOP;
    IF given."group" IS NOT NULL OR known.cap ->> 'per' = 'type' OR own_cap IS NOT NULL THEN
        INSERT INTO signalbox.job_submits (parents, groups, caps) VALUES (
            '{}', CASE WHEN given."group" IS NULL THEN '{}' ELSE jsonb_build_object(given."group", 1) END,
            CASE WHEN known.cap ->> 'per' = 'type' OR own_cap IS NOT NULL THEN jsonb_build_array(
                known.cap || jsonb_build_object(
                    'kind', CASE WHEN own_cap IS NULL THEN 'type' ELSE 'key' END, 'key', coalesce(own_cap, known.name)
                )) ELSE '[]' END
        );
    END IF;
    RETURN job;
END $$;
COMMENT ON FUNCTION signalbox.submit_job IS
    'Submits a job from any language: SELECT signalbox.submit_job(''run_task'', ''{"task": "prune_history"}'', ''{"tenant": "acme"}'').';

CREATE FUNCTION signalbox.end_attempts(ends jsonb)
RETURNS TABLE (id uuid, status text, follows boolean) LANGUAGE plpgsql
-- The settings force the primary key, because the statistics of a table that was just filled say that it is empty.
-- The plan is made once a session: planning for each array of a thousand ids takes ten times as long as the work.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();  -- one instant, since columns of a row are compared with each other
    ended uuid[];
    became text[];
    finals uuid[];
    unwanted uuid[];
    failures boolean;
    grouped boolean;
    followers uuid[];
BEGIN
    -- The token keeps a late worker from ending a job that was rescued and has started again.
    WITH changed AS (
        UPDATE signalbox.jobs AS j
        SET status = e.status,
            attempts = CASE e.charge WHEN 'refund' THEN j.attempts - 1 WHEN 'reset' THEN 0 ELSE j.attempts END,
            throttles = CASE WHEN e.charge = 'reset' THEN 0 ELSE j.throttles + (e.execution = 'throttled')::integer END,
            throttled_since = CASE WHEN e.charge = 'reset' THEN NULL
                WHEN e.execution = 'throttled' THEN coalesce(j.throttled_since, moment) ELSE j.throttled_since END,
            pieces = j.pieces + (e.execution = 'continued')::integer,
            lease_token = NULL, lease_expires_at = NULL, heartbeat_at = NULL, health_status = NULL,
            result = CASE WHEN e.status = 'completed' THEN e.result ELSE j.result END,
            output_files = coalesce(e.output_files, j.output_files),
            error_details = CASE WHEN e.status = 'completed' THEN NULL ELSE coalesce(e.error, j.error_details) END,
            cursor = coalesce(e.cursor, j.cursor),
            progress_percent = CASE WHEN e.status = 'completed' THEN 100
                ELSE coalesce(e.percent, j.progress_percent) END,
            progress_message = coalesce(e.message, j.progress_message),
            scheduled_for = CASE WHEN e.status = 'pending'
                THEN moment + e.delay_ms * interval '1 ms' ELSE j.scheduled_for END,
            send_at = CASE WHEN e.status = 'pending' THEN moment + e.look_ms * interval '1 ms' END,
            memory_usage_mb = coalesce(e.memory_mb, j.memory_usage_mb),
            cpu_usage_percent = CASE WHEN e.ended_ms > e.began_ms
                THEN 100 * e.cpu_ms / (e.ended_ms - e.began_ms) ELSE j.cpu_usage_percent END,
            started_at = j.started_at + coalesce(e.began_ms, 0) * interval '1 ms',
            completed_at = CASE WHEN e.status <> 'pending'
                THEN coalesce(j.started_at + e.ended_ms * interval '1 ms', moment) END,
            updated_at = greatest(moment, j.started_at + e.ended_ms * interval '1 ms')
        FROM (
            SELECT * FROM jsonb_to_recordset(ends) AS r (
                id uuid, token uuid, status text, execution text, charge text, result jsonb, output_files text[], error jsonb,
                delay_ms float8, look_ms float8, cursor jsonb, began_ms float8, ended_ms float8, cpu_ms float8, memory_mb integer, percent smallint,
                message text, metadata jsonb
            )
            -- Locked in one order: a submit may hold two of them as parents.
            ORDER BY id OFFSET 0
        ) AS e
        -- The token is compared as a column, and the status not at all. Otherwise the planner uses one of their
        -- indexes, because it expects at most one row, and finds a thousand.
        WHERE j.id = e.id AND j.lease_token = e.token
        RETURNING j.id, j.status, j.job_group IS NOT NULL AS grouped,
            j.status = 'pending' AND j.cancel_requested_at IS NOT NULL AS unwanted,
            j.executions, j.job_type, j.lane, j.worker_id, j.execution_node, j.queued_at, j.started_at,
            coalesce(j.started_at + (e.ended_ms - coalesce(e.began_ms, 0)) * interval '1 ms',
                greatest(moment, j.started_at)) AS ended_at,
            e.token, e.execution, e.result, e.metadata, e.error, e.memory_mb, e.cpu_ms
    ), written AS (
        INSERT INTO signalbox.job_executions (
            job_id, attempt_number, job_type, lane, status, lease_token, worker_id, execution_node, queued_at, started_at,
            completed_at, result, error_code, error_message, error_stack, memory_used_mb, cpu_time_ms, metadata
        )
        SELECT c.id, c.executions, c.job_type, c.lane, c.execution, c.token, c.worker_id, c.execution_node, c.queued_at,
            c.started_at, c.ended_at, c.result, c.error ->> 'type', c.error ->> 'message',
            coalesce(c.error ->> 'stack', c.error ->> 'at'), c.memory_mb, c.cpu_ms, c.metadata
        FROM changed AS c
    )
    SELECT array_agg(c.id), array_agg(CASE WHEN c.unwanted THEN 'cancelled' ELSE c.status END),
        array_agg(c.id) FILTER (WHERE c.status <> 'pending' OR c.unwanted),
        array_agg(c.id) FILTER (WHERE c.unwanted), bool_or(c.status = 'failed'), bool_or(c.grouped)
    INTO ended, became, finals, unwanted, failures, grouped FROM changed AS c;
    IF ended IS NULL THEN
        RETURN;
    END IF;
    IF unwanted IS NOT NULL THEN
        -- A job whose cancellation was requested is not tried again.
        UPDATE signalbox.jobs AS j
        SET status = 'cancelled', send_at = NULL, completed_at = moment, updated_at = moment
        WHERE j.id = ANY (unwanted);
    END IF;
    IF failures THEN
        PERFORM signalbox.add_dead_letters(ends, ended);
    END IF;
    IF finals IS NOT NULL AND (grouped OR EXISTS (
        SELECT FROM signalbox.job_dependencies WHERE depends_on_job_id = ANY (finals) AND NOT satisfied
    )) THEN
        followers := signalbox.resolve_dependents(finals);
    END IF;
    RETURN QUERY SELECT e.id, e.status, false FROM unnest(ended, became) AS e (id, status);
    IF EXISTS (SELECT FROM signalbox.job_caps) THEN
        RETURN QUERY SELECT NULL::uuid, 'capped', false;  -- perhaps jobs that one of these held may start now
    END IF;
    IF followers IS NOT NULL THEN
        RETURN QUERY SELECT j.id, j.status, true FROM signalbox.jobs AS j WHERE j.id = ANY (followers);
    END IF;
END $$;
COMMENT ON FUNCTION signalbox.end_attempts IS
    'Ends attempts as their worker decided: updates jobs, executions, dead letters and dependents. Returns the jobs whose lease token was still valid, with their new status.';

-- End one completed job as end_attempts would, in a third of the time: a transactional job ends alone, and code for a
-- thousand records is expensive for one. Return the jobs that waited for it, and nothing if the lease is lost.
CREATE FUNCTION signalbox.complete_job(
    token uuid, job uuid, began_ms float8, ended_ms float8, cpu_ms float8, memory_mb integer,
    result jsonb, output_files text[]
) RETURNS uuid[] LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off  -- as for end_attempts
AS $$
#variable_conflict use_variable
DECLARE
    moment timestamptz := clock_timestamp();
    grouped boolean;
BEGIN
    WITH changed AS (
        UPDATE signalbox.jobs AS j
        SET status = 'completed', lease_token = NULL, lease_expires_at = NULL, heartbeat_at = NULL, health_status = NULL,
            result = result, output_files = coalesce(output_files, j.output_files), error_details = NULL,
            progress_percent = 100, send_at = NULL, memory_usage_mb = coalesce(memory_mb, j.memory_usage_mb),
            cpu_usage_percent = CASE WHEN ended_ms > began_ms
                THEN 100 * cpu_ms / (ended_ms - began_ms) ELSE j.cpu_usage_percent END,
            started_at = j.started_at + began_ms * interval '1 ms',
            completed_at = j.started_at + ended_ms * interval '1 ms',
            updated_at = greatest(moment, j.started_at + ended_ms * interval '1 ms')
        WHERE j.id = job AND j.lease_token = token
        -- Not the whole row: PostgreSQL would store it temporarily, with its payload.
        RETURNING j.id, j.executions, j.job_type, j.lane, j.worker_id, j.execution_node, j.queued_at, j.started_at,
            j.completed_at, j.job_group
    ), written AS (
        INSERT INTO signalbox.job_executions (
            job_id, attempt_number, job_type, lane, status, lease_token, worker_id, execution_node, queued_at, started_at,
            completed_at, result, memory_used_mb, cpu_time_ms
        )
        SELECT c.id, c.executions, c.job_type, c.lane, 'completed', token, c.worker_id, c.execution_node, c.queued_at,
            c.started_at, c.completed_at, result, memory_mb, cpu_ms
        FROM changed AS c
    )
    SELECT c.job_group IS NOT NULL INTO grouped FROM changed AS c;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF grouped OR EXISTS (
        SELECT FROM signalbox.job_dependencies WHERE depends_on_job_id = job AND NOT satisfied
    ) THEN
        RETURN coalesce(signalbox.resolve_dependents(ARRAY[job]), '{}');
    END IF;
    RETURN '{}';
END $$;

-- The end of a transactional job is sent in one message with its COMMIT. So a lost lease must raise an error;
-- otherwise the job's effects would be committed.
CREATE FUNCTION signalbox.refuse_lost_lease(job uuid) RETURNS uuid[] LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the lease on job % belongs to another worker now', job USING ERRCODE = 'SB001';
END $$;

-- Reopen the newest dead letter of each kind of failure that was resolved and has occurred again. A kind that is open
-- or ignored stays unchanged.
CREATE FUNCTION signalbox.reopen_dead_letters(returned text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH mended AS (
        SELECT newest.id FROM (SELECT DISTINCT kind FROM unnest(returned) AS kind) AS kinds
        CROSS JOIN LATERAL (
            SELECT k.id, k.status FROM signalbox.dead_letter_jobs AS k
            WHERE k.fingerprint = kinds.kind ORDER BY k.last_failed_at DESC LIMIT 1
        ) AS newest
        WHERE newest.status = 'resolved'
    ), held AS (
        -- Locked in one order, because two workers may find the same two kinds.
        SELECT d.id FROM signalbox.dead_letter_jobs AS d WHERE d.id IN (SELECT id FROM mended) ORDER BY d.id FOR UPDATE
    )
    UPDATE signalbox.dead_letter_jobs AS d
    SET status = 'pending', resolved_at = NULL, notified_at = NULL,
        reopened_at = clock_timestamp(), updated_at = clock_timestamp()
    FROM held WHERE d.id = held.id AND d.status = 'resolved';
END $$;

-- Add dead letters in the transaction that fails the jobs, so that neither exists without the other.
CREATE FUNCTION signalbox.add_dead_letters(ends jsonb, ended uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
BEGIN
    PERFORM signalbox.reopen_dead_letters(ARRAY(
        SELECT e.fingerprint FROM jsonb_to_recordset(ends) AS e (id uuid, status text, fingerprint text)
        WHERE e.status = 'failed' AND e.id = ANY (ended)
    ));
    INSERT INTO signalbox.dead_letter_jobs AS known (
        original_job_id, job_type, payload, payload_version, failure_reason, error_type, final_error_message,
        final_error_stack, total_attempts, execution_history, fingerprint, severity, tenant, first_failed_at,
        last_failed_at
    )
    SELECT j.id, j.job_type, j.payload, j.payload_version, e.reason, e.error ->> 'type', e.error ->> 'message',
        coalesce(e.error ->> 'stack', e.error ->> 'at'), j.attempts, (
            SELECT jsonb_agg(jsonb_build_object(
                'attempt', x.attempt_number, 'status', x.status, 'started_at', x.started_at, 'completed_at', x.completed_at,
                'worker_id', x.worker_id, 'error', x.error_code, 'message', x.error_message
            ) ORDER BY x.attempt_number)
            FROM (
                SELECT * FROM signalbox.job_executions WHERE job_id = j.id ORDER BY attempt_number DESC LIMIT 20
            ) AS x
        ), e.fingerprint, coalesce(e.severity, 'warning'), j.tenant, moment, moment
    FROM jsonb_to_recordset(ends) AS e (
        id uuid, status text, reason text, error jsonb, fingerprint text, severity text
    )
    JOIN signalbox.jobs AS j ON j.id = e.id
    WHERE e.status = 'failed' AND j.status = 'failed' AND e.id = ANY (ended)
    ON CONFLICT (original_job_id) WHERE original_job_id IS NOT NULL DO UPDATE
    SET status = 'pending', payload = excluded.payload, payload_version = excluded.payload_version,
        failure_reason = excluded.failure_reason, error_type = excluded.error_type,
        final_error_message = excluded.final_error_message, final_error_stack = excluded.final_error_stack,
        total_attempts = known.total_attempts + excluded.total_attempts,
        execution_history = excluded.execution_history, fingerprint = excluded.fingerprint,
        severity = excluded.severity, resolved_at = NULL, resolved_by = NULL, notified_at = NULL,
        reopened_at = moment, last_failed_at = moment, updated_at = moment;
END $$;

-- Return attempts that have not ended before the instant. This uses executions_by_time: attempts that have ended since
-- then started at most an hour before it, and an old partition has few of them.
CREATE FUNCTION signalbox.executions_to_keep(which text, before timestamptz, most integer) RETURNS tid[] LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    kept tid[];
BEGIN
    EXECUTE format($look$
        SELECT coalesce(array_agg(place), '{}') FROM (
            SELECT ctid AS place FROM signalbox.%I
            WHERE started_at >= $1 - interval '1 hour' AND completed_at >= $1 LIMIT $2
        ) AS kept
    $look$, which) INTO kept USING before, most;
    RETURN kept;
END $$;

CREATE FUNCTION signalbox.drop_executions(which text, before timestamptz, most_kept integer DEFAULT 10000) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '1500ms' AS $$
DECLARE
    kept tid[];
    total bigint;
BEGIN
    before := least(before, clock_timestamp() - interval '1 day');  -- whatever is asked for
    IF NOT signalbox.may_drop('job_executions', which, before)
        OR cardinality(signalbox.executions_to_keep(which, before, most_kept + 1)) > most_kept
    THEN
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT count(*) FROM signalbox.%I', which) INTO total;
    -- Lock the parent itself: no attempt may end during this check. New statements wait, and then find the kept rows in
    -- their new place.
    LOCK TABLE ONLY signalbox.job_executions IN ACCESS EXCLUSIVE MODE;
    kept := signalbox.executions_to_keep(which, before, most_kept + 1);
    IF cardinality(kept) > most_kept THEN
        RETURN NULL;
    END IF;
    PERFORM signalbox.drop_partition('job_executions', which, kept);
    RETURN total - cardinality(kept);
END $$;
COMMENT ON FUNCTION signalbox.drop_executions IS
    'Drops a partition of job_executions. Attempts that have not ended before the instant are kept. Returns how many were deleted; null if too many must stay.';
REVOKE EXECUTE ON FUNCTION signalbox.drop_executions FROM PUBLIC;

SELECT signalbox.make_partitions('job_executions', 7);

-- ---- Staging

-- For import_table's staging tables: the only schema where the functions' role may create anything. The migrator's
-- log-in makes schemas, since the owner's group need not have that right.

RESET ROLE;
CREATE SCHEMA signalbox_staging;
