-- pause: pause one batch of active watchpoints of organisations that are overdue, oldest first, each with its record
-- SKIP LOCKED: two runs share the work, and the next run meets a watchpoint that its owner is changing.
WITH unpaid AS (
    SELECT watchpoint.id
    FROM forecasts.organizations AS organization
    JOIN forecasts.watchpoints AS watchpoint ON watchpoint.organization_id = organization.id
    WHERE organization.payment_failed_at <= %(before)s AND organization.deleted_at IS NULL
        AND watchpoint.status = 'active'
    ORDER BY watchpoint.created_at, watchpoint.id
    LIMIT %(size)s
    FOR NO KEY UPDATE OF watchpoint SKIP LOCKED
), paused AS (
    UPDATE forecasts.watchpoints
    SET status = 'paused', paused_at = %(now)s, paused_reason = 'billing_delinquency'
    WHERE id = ANY (ARRAY(SELECT id FROM unpaid))
    RETURNING id, organization_id
)
INSERT INTO forecasts.audit_logs (organization_id, actor, action, entity_type, entity_id, detail, created_at)
SELECT organization_id, 'signalbox', 'watchpoint.paused', 'watchpoint', id, '{"reason": "billing_delinquency"}', %(now)s
FROM paused;
