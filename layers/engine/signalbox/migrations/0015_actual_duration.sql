-- serves: 1
-- The duration of a job of several pieces is that of all of them. Only the functions that end jobs can know it, so the
-- column is no longer generated; what it holds stays, and no row is rewritten.

ALTER TABLE signalbox.jobs ALTER COLUMN actual_duration DROP EXPRESSION;
COMMENT ON COLUMN signalbox.jobs.actual_duration IS
    'How long the job was at work: its last attempt with the pieces and snoozes before it; not the waits between them.';

CREATE FUNCTION signalbox.time_at_work(job uuid, since timestamptz, last integer) RETURNS interval LANGUAGE sql STABLE STRICT AS $$
    SELECT coalesce(sum(completed_at - started_at), interval '0') FROM signalbox.job_executions
    WHERE job_id = job AND started_at >= since AND (status IN ('continued', 'snoozed') OR attempt_number = last)
$$;
COMMENT ON FUNCTION signalbox.time_at_work IS
    'How long a job''s pieces and snoozes since its first start took, with its last attempt; null for one that never began.';

-- As before, but for actual_duration.
CREATE OR REPLACE FUNCTION signalbox.end_attempts(ends jsonb)
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
            actual_duration = CASE WHEN e.status <> 'pending'
                THEN coalesce(j.started_at + e.ended_ms * interval '1 ms', moment)
                    - (j.started_at + coalesce(e.began_ms, 0) * interval '1 ms')
                    + CASE WHEN j.executions > 1
                        THEN signalbox.time_at_work(j.id, j.first_started_at, j.executions) ELSE interval '0' END END,
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
        SET status = 'cancelled', send_at = NULL, completed_at = moment, updated_at = moment,
            actual_duration = signalbox.time_at_work(j.id, j.first_started_at, j.executions)
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

-- As before, but for actual_duration.
CREATE OR REPLACE FUNCTION signalbox.complete_job(
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
            actual_duration = (j.started_at + ended_ms * interval '1 ms') - (j.started_at + began_ms * interval '1 ms')
                + CASE WHEN j.executions > 1
                THEN signalbox.time_at_work(j.id, j.first_started_at, j.executions) ELSE interval '0' END,
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
