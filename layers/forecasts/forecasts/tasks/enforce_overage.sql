-- pause_newest: pause one batch of watchpoints beyond their organisation's plan, newest first, each with its record
-- The oldest stay, as many as the plan has. The excess is counted before anything is locked, and rows that another
-- run has paused since drop out when they are locked: two runs at once never pause more than the excess.
WITH beyond AS (
    SELECT watchpoint.id
    FROM forecasts.organizations AS organization
    JOIN forecasts.plan_limits AS plan_limit ON plan_limit.plan = organization.plan
    CROSS JOIN LATERAL (
        SELECT active.id FROM forecasts.watchpoints AS active
        WHERE active.organization_id = organization.id AND active.status = 'active'
        ORDER BY active.created_at, active.id
        OFFSET plan_limit.watchpoints
    ) AS excess
    JOIN forecasts.watchpoints AS watchpoint ON watchpoint.id = excess.id
    WHERE organization.overage_started_at <= %(before)s AND organization.deleted_at IS NULL
        AND watchpoint.status = 'active'
    ORDER BY watchpoint.created_at DESC, watchpoint.id DESC
    LIMIT %(size)s
    FOR NO KEY UPDATE OF watchpoint SKIP LOCKED
), paused AS (
    UPDATE forecasts.watchpoints
    SET status = 'paused', paused_at = %(now)s, paused_reason = 'plan_overage'
    WHERE id = ANY (ARRAY(SELECT id FROM beyond))
    RETURNING id, organization_id
)
INSERT INTO forecasts.audit_logs (organization_id, actor, action, entity_type, entity_id, detail, created_at)
SELECT organization_id, 'signalbox', 'watchpoint.paused', 'watchpoint', id, '{"reason": "plan_overage"}', %(now)s
FROM paused;
