-- serves: 1
-- Why a job is not at work: one reason, with what holds it.

-- Return the one reason why a job does not run, since when and until when, and what to look at: `kind` and `key` name a
-- job, group, cap, pause or lane. The order is that in which the engine meets the reasons.
CREATE FUNCTION signalbox.explain_job(job uuid)
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
COMMENT ON FUNCTION signalbox.explain_job IS 'Why a job does not run: one reason, since when, until when, and what to look at.';
