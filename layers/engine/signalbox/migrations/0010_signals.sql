-- serves: 1
-- Signals that jobs wait for, and steps whose answers they remember.

CREATE TABLE signalbox.signals (
    key text PRIMARY KEY,
    payload jsonb,
    sent_at timestamptz,
    sent_by text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT signal_key_bounded CHECK (length(key) BETWEEN 1 AND 200)
);
COMMENT ON TABLE signalbox.signals IS 'Signals, by key: sent, or waited for. The first that is sent with a key counts.';
COMMENT ON COLUMN signalbox.signals.sent_at IS 'Null: it is waited for. The row is what a wait and a signal lock, so that neither misses the other.';
-- For pruning.
CREATE INDEX signals_by_time ON signalbox.signals (coalesce(sent_at, created_at));

CREATE TABLE signalbox.job_waits (
    job_id uuid PRIMARY KEY REFERENCES signalbox.jobs ON DELETE CASCADE,
    key text NOT NULL,
    until timestamptz NOT NULL,
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_by text,
    payload jsonb,
    CONSTRAINT wait_end_known CHECK (ended_by IN ('signal', 'deadline'))
);
COMMENT ON TABLE signalbox.job_waits IS 'The signal that a job waits for, or last waited for.';
COMMENT ON COLUMN signalbox.job_waits.ended_by IS 'Set when the job first asks what has come, so that each of its attempts is told the same.';
CREATE INDEX job_waits_open ON signalbox.job_waits (key) WHERE ended_by IS NULL;

CREATE TABLE signalbox.job_steps (
    job_id uuid NOT NULL REFERENCES signalbox.jobs ON DELETE CASCADE,
    name text NOT NULL,
    answer jsonb,
    lease_token uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, name)
);
COMMENT ON TABLE signalbox.job_steps IS 'Named steps of jobs that are not repeated, with their answers.';
COMMENT ON COLUMN signalbox.job_steps.lease_token IS 'The lease of the attempt that has made the step.';

-- Send a signal. Return whether it is the first with this key, and the jobs that it makes due.
CREATE FUNCTION signalbox.signal(key text, payload jsonb DEFAULT NULL, sent_by text DEFAULT NULL)
RETURNS TABLE (is_first boolean, woken uuid[]) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    moment timestamptz;
BEGIN
    INSERT INTO signalbox.signals AS s (key, payload, sent_at, sent_by)
    VALUES (key, payload, clock_timestamp(), sent_by)
    ON CONFLICT ON CONSTRAINT signals_pkey DO UPDATE
    SET payload = excluded.payload, sent_at = excluded.sent_at, sent_by = excluded.sent_by WHERE s.sent_at IS NULL;
    is_first := FOUND;
    moment := clock_timestamp();  -- after the wait for the row's lock
    WITH due AS (
        UPDATE signalbox.jobs AS j
        SET scheduled_for = moment, send_at = CASE WHEN j.send_at IS NOT NULL THEN moment END, updated_at = moment
        FROM signalbox.job_waits AS w
        WHERE is_first AND w.key = key AND w.ended_by IS NULL AND j.id = w.job_id
            AND j.status IN ('pending', 'queued', 'paused')
        RETURNING j.id
    )
    SELECT coalesce(array_agg(due.id), '{}') INTO woken FROM due;
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION signalbox.signal IS
    'Sends a signal to the jobs that wait for its key, or will: the first with a key counts. dispatch_jobs sends the jobs within a minute.';

-- End attempts of which some wait for a signal from now on. Signals are locked first, as `signal` does.
CREATE FUNCTION signalbox.end_waiting(ends jsonb) RETURNS TABLE (id uuid, status text, follows boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    keys constant text[] := ARRAY(
        SELECT DISTINCT e.wait_key FROM jsonb_to_recordset(ends) AS e (wait_key text) WHERE e.wait_key IS NOT NULL ORDER BY 1
    );
    found jsonb;
    waiting uuid[];
    moment timestamptz;
BEGIN
    INSERT INTO signalbox.signals (key) SELECT unnest(keys) ON CONFLICT DO NOTHING;
    PERFORM FROM signalbox.signals WHERE key = ANY (keys) ORDER BY key FOR UPDATE;
    SELECT jsonb_agg(to_jsonb(r)) INTO found FROM signalbox.end_attempts(ends) AS r;
    moment := clock_timestamp();
    RETURN QUERY SELECT f.id, f.status, f.follows FROM jsonb_to_recordset(found) AS f (id uuid, status text, follows boolean);
    WITH begun AS (
        INSERT INTO signalbox.job_waits AS w (job_id, key, until)
        SELECT e.id, e.wait_key, least(e.wait_until, moment + interval '366 days')
        FROM jsonb_to_recordset(ends) AS e (id uuid, wait_key text, wait_until timestamptz)
        JOIN jsonb_to_recordset(found) AS f (id uuid, status text, follows boolean) ON f.id = e.id
        WHERE e.wait_key IS NOT NULL AND f.status = 'pending' AND NOT f.follows
        ON CONFLICT (job_id) DO UPDATE
        SET key = excluded.key, until = excluded.until, began_at = moment, ended_by = NULL, payload = NULL
        RETURNING w.job_id
    )
    SELECT array_agg(job_id) INTO waiting FROM begun;
    -- What has been sent already makes its job due at once.
    RETURN QUERY
        UPDATE signalbox.jobs AS j
        SET scheduled_for = CASE WHEN s.sent_at IS NULL THEN w.until ELSE moment END,
            send_at = CASE WHEN s.sent_at IS NULL THEN w.until ELSE moment END
        FROM signalbox.job_waits AS w JOIN signalbox.signals AS s ON s.key = w.key
        WHERE j.id = ANY (waiting) AND w.job_id = j.id
        RETURNING j.id, j.status, true;
END $$;

-- Return what a job that waited has received: a signal, its deadline, or nothing yet. Its attempts are all told the same.
CREATE FUNCTION signalbox.read_wait(job uuid, token uuid) RETURNS TABLE (ended_by text, payload jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    UPDATE signalbox.job_waits AS w
    SET ended_by = CASE WHEN s.sent_at IS NULL THEN 'deadline' ELSE 'signal' END, payload = s.payload
    FROM signalbox.jobs AS j
    LEFT JOIN signalbox.job_waits AS o ON o.job_id = j.id
    LEFT JOIN signalbox.signals AS s ON s.key = o.key
    WHERE w.job_id = job AND w.ended_by IS NULL AND j.id = job AND j.lease_token = token
        AND (s.sent_at IS NOT NULL OR w.until <= clock_timestamp());
    RETURN QUERY SELECT w.ended_by, w.payload FROM signalbox.job_waits AS w WHERE w.job_id = job AND w.ended_by IS NOT NULL;
END $$;

-- Return the one reason why a job does not run, since when and until when, and what to look at: `kind` and `key` name a
-- job, group, cap, pause or lane. The order is that in which the engine meets the reasons.
CREATE OR REPLACE FUNCTION signalbox.explain_job(job uuid)
RETURNS TABLE (reason text, since timestamptz, until timestamptz, kind text, key text, detail jsonb)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    j signalbox.jobs;
    c signalbox.job_caps;
    moment constant timestamptz := clock_timestamp();
BEGIN
    SELECT * INTO j FROM signalbox.jobs WHERE id = job;
    IF j.id IS NULL THEN
        RETURN;
    ELSIF j.completed_at IS NOT NULL THEN
        RETURN QUERY SELECT 'ended', j.completed_at, NULL::timestamptz, NULL, NULL, jsonb_build_object('status', j.status);
        RETURN;
    ELSIF j.status = 'running' THEN
        RETURN QUERY SELECT 'running', j.started_at, NULL::timestamptz, 'worker', j.worker_id, '{}'::jsonb;
        RETURN;
    ELSIF j.paused_by IS NOT NULL THEN
        RETURN QUERY SELECT 'paused', j.updated_at, NULL::timestamptz, 'job', j.id::text, jsonb_build_object('by', j.paused_by);
        RETURN;
    ELSIF j.unmet_dependencies > 0 THEN
        -- A completion job has no row in job_dependencies: its group is what it waits for.
        RETURN QUERY
            SELECT 'parent', j.created_at, NULL::timestamptz, 'job', p.id::text,
                jsonb_build_object('job_type', p.job_type, 'status', p.status, 'unmet', j.unmet_dependencies)
            FROM signalbox.job_dependencies AS d JOIN signalbox.jobs AS p ON p.id = d.depends_on_job_id
            WHERE d.job_id = j.id AND NOT d.satisfied ORDER BY p.completed_at NULLS FIRST, p.id LIMIT 1;
        IF NOT FOUND THEN
            RETURN QUERY
                SELECT 'group', j.created_at, NULL::timestamptz, 'group', g.id,
                    jsonb_build_object('left', g.total - g.completed - g.failed - g.cancelled, 'total', g.total)
                FROM signalbox.job_groups AS g WHERE g.completion_job_id = j.id AND g.finished_at IS NULL LIMIT 1;
        END IF;
        RETURN;
    ELSIF j.held_by IS NULL AND j.held_since IS NOT NULL AND j.status = 'pending' THEN
        RETURN QUERY SELECT 'suspect', j.held_since, j.scheduled_for, NULL, NULL,
            jsonb_build_object('error', j.error_details ->> 'message');
        RETURN;
    ELSIF j.status = 'pending' AND j.held_by IS NULL AND j.scheduled_for > moment THEN
        RETURN QUERY SELECT 'signal', w.began_at, j.scheduled_for, 'signal', w.key, '{}'::jsonb
            FROM signalbox.job_waits AS w WHERE w.job_id = j.id AND w.ended_by IS NULL AND w.until = j.scheduled_for;
        IF FOUND THEN
            RETURN;
        END IF;
        RETURN QUERY SELECT 'time', j.updated_at, j.scheduled_for, NULL, NULL, jsonb_build_object(
            'cause', CASE WHEN j.throttles > 0 THEN 'throttled' WHEN j.attempts > 0 THEN 'retry'
                WHEN j.pieces > 0 OR j.executions > 0 THEN 'snooze' ELSE 'submitted' END,
            'error', j.error_details ->> 'message');
        RETURN;
    END IF;
    -- A pause holds what waits and what is claimed next, also where a cap holds it already.
    SELECT * INTO c FROM signalbox.job_caps AS l
    WHERE l.paused AND (l.kind, l.key) IN (('type', j.job_type), ('lane', j.lane), ('tenant', j.tenant), ('key', j.cap_key))
    ORDER BY l.changed_at LIMIT 1;
    IF c.kind IS NOT NULL THEN
        RETURN QUERY SELECT 'pause', c.changed_at, NULL::timestamptz, c.kind, c.key,
            jsonb_build_object('by', c.changed_by, 'reason', c.reason);
        RETURN;
    END IF;
    IF j.status = 'paused' THEN  -- its pause has just ended, and it is about to be resumed
        RETURN QUERY SELECT 'paused', j.updated_at, NULL::timestamptz, 'job', j.id::text, '{}'::jsonb;
        RETURN;
    ELSIF j.held_by IS NOT NULL THEN
        SELECT * INTO c FROM signalbox.job_caps AS l WHERE l.kind || ':' || l.key = j.held_by;
        RETURN QUERY SELECT CASE WHEN coalesce(signalbox.room_under_cap(c), 1) = 0 THEN 'cap' ELSE 'rate' END,
            j.held_since, CASE WHEN coalesce(signalbox.room_under_cap(c), 1) > 0 THEN c.next_at END,
            split_part(j.held_by, ':', 1), substr(j.held_by, strpos(j.held_by, ':') + 1),
            jsonb_build_object('max_running', c.max_running, 'rate', c.rate, 'per_seconds', c.per_seconds, 'running', (
                SELECT count(*) FROM signalbox.jobs AS r WHERE r.status = 'running' AND c.key = CASE c.kind
                    WHEN 'type' THEN r.job_type WHEN 'lane' THEN r.lane WHEN 'tenant' THEN r.tenant ELSE r.cap_key END
            ), 'before', (
                SELECT count(*) FROM signalbox.jobs AS h
                WHERE h.held_by = j.held_by AND (h.priority, h.id) < (j.priority, j.id)
            ));
        RETURN;
    ELSIF j.status = 'pending' AND j.send_at <= moment THEN
        RETURN QUERY SELECT 'dispatch', coalesce(j.scheduled_for, j.created_at), NULL::timestamptz, 'task', 'dispatch_jobs',
            '{}'::jsonb;
        RETURN;
    END IF;
    -- Its message is in its lane. `send_at` is when dispatch_jobs looks whether the message got lost.
    RETURN QUERY SELECT CASE WHEN coalesce(j.queued_at, j.scheduled_for) > moment - interval '1 min' OR EXISTS (
            SELECT FROM signalbox.jobs AS r WHERE r.status = 'running' AND r.lane = j.lane
                AND coalesce(r.heartbeat_at, r.started_at) > moment - interval '1 min'
        ) OR EXISTS (
            SELECT FROM signalbox.job_executions AS x
            WHERE x.started_at > moment - interval '1 min' AND x.lane = j.lane
        ) THEN 'lane' ELSE 'no_worker' END,
        coalesce(j.queued_at, j.scheduled_for), NULL::timestamptz, 'lane', j.lane, jsonb_build_object('before', (
            -- The index of waiting jobs leads to those that were sent earlier; beyond ten thousand nobody counts.
            SELECT count(*) FROM (
                SELECT FROM signalbox.jobs AS q
                WHERE q.lane = j.lane AND q.priority = ANY ('{1,2,3,4,5,6,7,8,9,10}') AND q.send_at < j.send_at
                    AND q.status = 'queued' LIMIT 10000
            ) AS earlier
        ), 'looked_for_at', j.send_at);
END $$;
