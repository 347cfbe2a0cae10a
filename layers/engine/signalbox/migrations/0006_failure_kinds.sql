-- serves: 1
-- Kinds of failure that are ignored for a while, and those that return in a later version.

CREATE TABLE signalbox.deploys (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    version text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE signalbox.deploys IS 'The deploys that brought another version of the code; the migrator adds them.';
COMMENT ON COLUMN signalbox.deploys.version IS 'The versions of the stack''s layers.';

-- Return the version of the code at an instant; NULL before the first deploy that was recorded.
CREATE FUNCTION signalbox.version_at(moment timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT d.version FROM signalbox.deploys AS d WHERE d.at <= moment ORDER BY d.id DESC LIMIT 1
$$;

CREATE TABLE signalbox.ignored_kinds (
    fingerprint text PRIMARY KEY,
    ignored_until timestamptz,
    ignored_next_left integer,
    ignored_by text NOT NULL,
    reason text,
    ignored_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ignored_until_or_next CHECK ((ignored_until IS NULL) <> (ignored_next_left IS NULL)),
    CONSTRAINT ignored_next_not_negative CHECK (ignored_next_left >= 0)
);
COMMENT ON TABLE signalbox.ignored_kinds IS
    'Kinds of failure whose new dead letters are ignored, until a time or for a number of failures.';
COMMENT ON COLUMN signalbox.ignored_kinds.ignored_next_left IS 'How many more failures are ignored; none at 0.';

ALTER TABLE signalbox.dead_letter_jobs
    ADD COLUMN version text,
    ADD COLUMN regressed_at timestamptz;
-- Set apart, so that the rows that are there stay as they are.
ALTER TABLE signalbox.dead_letter_jobs ALTER COLUMN version SET DEFAULT signalbox.version_at(clock_timestamp());
COMMENT ON COLUMN signalbox.dead_letter_jobs.version IS 'The version of the code that was deployed last when it failed.';
COMMENT ON COLUMN signalbox.dead_letter_jobs.regressed_at IS
    'When its kind, which was resolved, returned in a later version; null once it is resolved again.';

-- Count these failures, one fingerprint each, against what is ignored of their kinds. Return for each such kind how many
-- are ignored.
CREATE FUNCTION signalbox.ignore_failures(failures text[])
RETURNS TABLE (fingerprint text, number bigint, ignored_by text, reason text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH kinds AS (
        SELECT kind, count(*) AS number FROM unnest(failures) AS kind GROUP BY kind
    ), held AS (
        -- Only kinds with a number of failures left are locked, to the end of the transaction. The order is one for all,
        -- because two workers may have failures of the same two kinds.
        SELECT k.* FROM signalbox.ignored_kinds AS k
        WHERE k.fingerprint = ANY (failures) AND k.ignored_next_left > 0
        ORDER BY k.fingerprint FOR UPDATE
    ), counted AS (
        UPDATE signalbox.ignored_kinds AS k SET ignored_next_left = greatest(0, held.ignored_next_left - kinds.number)
        FROM held JOIN kinds ON kinds.kind = held.fingerprint
        WHERE k.fingerprint = held.fingerprint
        RETURNING k.fingerprint, least(held.ignored_next_left, kinds.number), k.ignored_by, k.reason
    )
    SELECT * FROM counted
    UNION ALL
    SELECT k.fingerprint, kinds.number, k.ignored_by, k.reason
    FROM signalbox.ignored_kinds AS k JOIN kinds ON kinds.kind = k.fingerprint
    WHERE k.ignored_until > clock_timestamp();
END $$;

-- Reopen the newest dead letter of each kind of failure that was resolved and has occurred again. A kind that is open
-- or ignored stays unchanged. Return the kinds that were resolved in another version of the code: regressions.
CREATE FUNCTION signalbox.reopen_kinds(returned text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    regressed text[];
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
        SELECT d.id, d.resolved_at FROM signalbox.dead_letter_jobs AS d
        WHERE d.id IN (SELECT id FROM mended) ORDER BY d.id FOR UPDATE
    ), reopened AS (
        UPDATE signalbox.dead_letter_jobs AS d
        SET status = 'pending', resolved_at = NULL, notified_at = NULL,
            reopened_at = clock_timestamp(), updated_at = clock_timestamp()
        FROM held WHERE d.id = held.id AND d.status = 'resolved'
        RETURNING d.fingerprint, held.resolved_at
    )
    SELECT array_agg(fingerprint) INTO regressed FROM reopened
    WHERE signalbox.version_at(resolved_at) IS DISTINCT FROM signalbox.version_at(clock_timestamp());
    RETURN coalesce(regressed, '{}');
END $$;

-- The code of the last release calls it by this name.
CREATE OR REPLACE FUNCTION signalbox.reopen_dead_letters(returned text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM signalbox.reopen_kinds(returned);
END $$;

-- Add dead letters in the transaction that fails the jobs, so that neither exists without the other.
CREATE OR REPLACE FUNCTION signalbox.add_dead_letters(ends jsonb, ended uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    failures text[] := ARRAY(
        SELECT e.fingerprint FROM jsonb_to_recordset(ends) AS e (id uuid, status text, fingerprint text)
        WHERE e.status = 'failed' AND e.id = ANY (ended)
    );
    ignored jsonb;
    regressed text[];
BEGIN
    SELECT coalesce(jsonb_object_agg(i.fingerprint, to_jsonb(i)), '{}') INTO ignored
    FROM signalbox.ignore_failures(failures) AS i;
    regressed := signalbox.reopen_kinds(ARRAY(
        SELECT kind FROM unnest(failures) AS kind GROUP BY kind
        HAVING count(*) > coalesce((ignored -> kind ->> 'number')::bigint, 0)
    ));
    INSERT INTO signalbox.dead_letter_jobs AS known (
        original_job_id, job_type, payload, payload_version, failure_reason, error_type, final_error_message,
        final_error_stack, total_attempts, execution_history, fingerprint, severity, tenant, first_failed_at,
        last_failed_at, status, resolved_at, resolved_by, resolution_notes, regressed_at
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
        ), e.fingerprint, coalesce(e.severity, 'warning'), j.tenant, moment, moment,
        CASE WHEN i.rule IS NULL THEN 'pending' ELSE 'ignored' END, CASE WHEN i.rule IS NOT NULL THEN moment END,
        i.rule ->> 'ignored_by', i.rule ->> 'reason',
        CASE WHEN i.rule IS NULL AND e.fingerprint = ANY (regressed) THEN moment END
    FROM (
        SELECT r.*, row_number() OVER (PARTITION BY r.fingerprint ORDER BY r.id) AS place
        FROM jsonb_to_recordset(ends) AS r (
            id uuid, status text, reason text, error jsonb, fingerprint text, severity text
        )
        WHERE r.status = 'failed' AND r.id = ANY (ended)
    ) AS e
    JOIN signalbox.jobs AS j ON j.id = e.id
    LEFT JOIN LATERAL (
        SELECT ignored -> e.fingerprint AS rule WHERE e.place <= (ignored -> e.fingerprint ->> 'number')::bigint
    ) AS i ON true
    WHERE j.status = 'failed'
    ON CONFLICT (original_job_id) WHERE original_job_id IS NOT NULL DO UPDATE
    SET status = excluded.status, payload = excluded.payload, payload_version = excluded.payload_version,
        failure_reason = excluded.failure_reason, error_type = excluded.error_type,
        final_error_message = excluded.final_error_message, final_error_stack = excluded.final_error_stack,
        total_attempts = known.total_attempts + excluded.total_attempts,
        execution_history = excluded.execution_history, fingerprint = excluded.fingerprint,
        severity = excluded.severity, resolved_at = excluded.resolved_at, resolved_by = excluded.resolved_by,
        resolution_notes = coalesce(excluded.resolution_notes, known.resolution_notes), version = excluded.version,
        regressed_at = coalesce(excluded.regressed_at, CASE WHEN known.fingerprint = excluded.fingerprint THEN known.regressed_at END),
        notified_at = NULL, reopened_at = moment, last_failed_at = moment, updated_at = moment;
END $$;
