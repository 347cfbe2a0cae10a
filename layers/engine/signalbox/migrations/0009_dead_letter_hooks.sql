-- serves: 1
-- A function of a job type that is called where a job of it is dead-lettered, and what jobs note of where they were.

-- Not columns of job_types: the migrator of the last release compares its rows as a whole.
CREATE TABLE signalbox.job_type_options (
    name text PRIMARY KEY REFERENCES signalbox.job_types ON DELETE CASCADE,
    on_dead_letter text
);
COMMENT ON TABLE signalbox.job_type_options IS 'What else is known of the job types that this stack runs.';
COMMENT ON COLUMN signalbox.job_type_options.on_dead_letter IS
    'The function (job uuid, payload jsonb, reason text, error jsonb) that is called in the transaction that dead-letters a job.';

-- Call the functions of the types whose jobs have failed. An error of one is undone and noted in the dead letter: else
-- the job could never end. A lock that is not to be had is an error of the whole, which is tried again.
CREATE FUNCTION signalbox.run_dead_letter_hooks(ends jsonb, ended uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    failed record;
BEGIN
    FOR failed IN
        SELECT j.id, j.payload, e.reason, e.error, t.on_dead_letter AS hook
        FROM jsonb_to_recordset(ends) AS e (id uuid, status text, reason text, error jsonb)
        JOIN signalbox.jobs AS j ON j.id = e.id
        JOIN signalbox.job_type_options AS t ON t.name = j.job_type AND t.on_dead_letter IS NOT NULL
        WHERE e.status = 'failed' AND e.id = ANY (ended) AND j.status = 'failed'
        ORDER BY j.id
    LOOP
        BEGIN
            EXECUTE format('SELECT %s($1, $2, $3, $4)', failed.hook)
            USING failed.id, failed.payload, failed.reason, failed.error;
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected THEN
                RAISE;
            WHEN OTHERS THEN
                UPDATE signalbox.dead_letter_jobs AS d
                SET metadata = coalesce(d.metadata, '{}') || jsonb_build_object('hook_error', SQLSTATE || ': ' || SQLERRM)
                WHERE d.original_job_id = failed.id;
        END;
    END LOOP;
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
        last_failed_at, status, resolved_at, resolved_by, resolution_notes, regressed_at, metadata
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
        CASE WHEN i.rule IS NULL AND e.fingerprint = ANY (regressed) THEN moment END, e.metadata
    FROM (
        SELECT r.*, row_number() OVER (PARTITION BY r.fingerprint ORDER BY r.id) AS place
        FROM jsonb_to_recordset(ends) AS r (
            id uuid, status text, reason text, error jsonb, fingerprint text, severity text, metadata jsonb
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
        notified_at = NULL, reopened_at = moment, last_failed_at = moment, updated_at = moment, metadata = excluded.metadata;
    PERFORM signalbox.run_dead_letter_hooks(ends, ended);
END $$;
