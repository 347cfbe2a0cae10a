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
    RAISE EXCEPTION 'job_history row % is final (%): it can''t become %', OLD.id, OLD.status, NEW.status
        USING ERRCODE = 'check_violation';
END $$;

-- The WHEN keeps the legal path, running to final, free of a function call.
CREATE TRIGGER final_runs_stay BEFORE UPDATE OF status ON signalbox.job_history
    FOR EACH ROW WHEN (OLD.status <> 'running') EXECUTE FUNCTION signalbox.refuse_rewrite();

-- Tables by time: job_history by slot here, job_executions by the job's id (0002), whose first bits are its time.
-- What is in no partition of its own is in the default one: late and early clocks, and all that came while no partitions
-- were made. docs/tables-by-time.md tells the whole.
CREATE TABLE signalbox.job_history_default PARTITION OF signalbox.job_history DEFAULT;

CREATE FUNCTION signalbox.first_id(since timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT (lpad(to_hex(greatest(0, floor(extract(epoch FROM since) * 1000))::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
COMMENT ON FUNCTION signalbox.first_id IS 'The least that an id of version 7 can be which was made since.';

CREATE FUNCTION signalbox.time_of(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
$$;
COMMENT ON FUNCTION signalbox.time_of IS 'When an id of version 7 was made, by its maker''s clock.';

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
COMMENT ON VIEW signalbox.partitions IS 'The partitions that hold a stretch of time, of each table that has such.';

-- The columns that can be given, to copy a row.
CREATE FUNCTION signalbox.columns_of(of_table text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_catalog.pg_attribute
    WHERE attrelid = ('signalbox.' || of_table)::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
$$;

-- One partition, with what the default one holds of its stretch. The caller sees to who may.
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
    -- The parent itself: who comes now waits here, and then sees the new partition; in the middle of a statement they
    -- would look for the moved rows in the old one.
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
-- A lock that is not to be had in this time is left for another day: whoever comes meanwhile waits behind it.
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
        RAISE EXCEPTION 'no partitions of % days are made of ''%'': give job_executions or job_history, and 1 to 366',
            days, of_table USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('signalbox.partitions ' || of_table));
    SELECT max(p.ends_at) INTO starts FROM signalbox.partitions AS p WHERE p.of_table = make_partitions.of_table;
    -- After a long time without: what lies further back stays in the default partition, and goes row by row.
    starts := greatest(coalesce(starts, today), today - 60 * length);
    IF starts < today + 2 * length AND NOT at_any_cost
        AND pg_relation_size(('signalbox.' || of_table || '_default')::regclass) > most_scanned
    THEN
        RAISE EXCEPTION 'the default partition of % has more than 1 GB, which a new partition has it searched for under a lock',
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
        -- A past stretch without rows needs none. One with too many to move at once is left where it is.
        IF held <= most_moved AND (held > 0 OR ends > today) THEN
            PERFORM signalbox.add_partition(of_table, starts, ends);
            made := made + 1;
        END IF;
        starts := ends;
    END LOOP;
    RETURN made;
END $$;
COMMENT ON FUNCTION signalbox.make_partitions IS
    'Makes the partitions of so many days that a table lacks, up to twice that from today, and answers how many.';
REVOKE EXECUTE ON FUNCTION signalbox.make_partitions FROM PUBLIC;

-- Whether it is there, and old enough as a whole. Refuses to look with a snapshot that is older than the lock.
CREATE FUNCTION signalbox.may_drop(of_table text, which text, before timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'partition % is dropped in READ COMMITTED only: else what was changed meanwhile would be lost', which
            USING ERRCODE = 'active_sql_transaction';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('signalbox.partitions ' || of_table));
    RETURN EXISTS (
        SELECT FROM signalbox.partitions AS p
        WHERE p.of_table = may_drop.of_table AND p.name = which AND p.ends_at <= before
    );
END $$;

-- What must stay goes to the default partition. The caller has locked the table and looked.
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
    -- Nothing that is hardly a day old, whatever is asked for.
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
    'Drops a partition of job_history and answers how many runs went; each task''s of before the instant in `retained` may. Null: too many must stay.';
REVOKE EXECUTE ON FUNCTION signalbox.drop_runs FROM PUBLIC;

SELECT signalbox.make_partitions('job_history', 7);

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
        -- A run by hand misses nothing: the person sees the answer.
        verdict := CASE why WHEN 'manual' THEN 'skipped' ELSE 'missed' END;
        because := 'another slot of the task is being run, and its runs may not overlap';
    END IF;
    IF done IS NULL THEN
        because := because || format(': see `signalbox history --task %s --status running`', of_task);
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
-- The next slots of a backfill, and those whose invocation got lost.
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
