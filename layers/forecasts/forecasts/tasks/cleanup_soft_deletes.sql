-- list_due: one page of those to delete, the longest deleted first
SELECT id, deleted_at::text FROM forecasts.organizations
WHERE deleted_at < %(before)s AND (deleted_at, id) > (%(after)s::timestamptz, %(after_id)s)
ORDER BY deleted_at, id
LIMIT %(page)s;

-- delete_notifications: delete one batch of a deleted organisation's notifications; their deliveries go with them
-- FOR SHARE, here and below: a restore of the organisation waits for the batch, and no batch begins after it. SKIP
-- LOCKED: two runs share the work, and rows locked by others stay for the next. By ctid: the lock keeps a row in its
-- place, and a join would look it up again.
WITH doomed AS MATERIALIZED (
    SELECT id FROM forecasts.organizations WHERE id = %(id)s AND deleted_at < %(before)s FOR SHARE SKIP LOCKED
)
DELETE FROM forecasts.notifications WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM forecasts.notifications
    WHERE organization_id = (SELECT id FROM doomed)
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
));

-- delete_watchpoints: one batch of a deleted organisation's
WITH doomed AS MATERIALIZED (
    SELECT id FROM forecasts.organizations WHERE id = %(id)s AND deleted_at < %(before)s FOR SHARE SKIP LOCKED
)
DELETE FROM forecasts.watchpoints WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM forecasts.watchpoints
    WHERE organization_id = (SELECT id FROM doomed)
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
));

-- delete_idempotency_keys: one batch of a deleted organisation's
WITH doomed AS MATERIALIZED (
    SELECT id FROM forecasts.organizations WHERE id = %(id)s AND deleted_at < %(before)s FOR SHARE SKIP LOCKED
)
DELETE FROM forecasts.idempotency_keys WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM forecasts.idempotency_keys
    WHERE organization_id = (SELECT id FROM doomed)
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
));

-- delete_usage: one batch of a deleted organisation's
WITH doomed AS MATERIALIZED (
    SELECT id FROM forecasts.organizations WHERE id = %(id)s AND deleted_at < %(before)s FOR SHARE SKIP LOCKED
)
DELETE FROM forecasts.usage_history WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM forecasts.usage_history
    WHERE organization_id = (SELECT id FROM doomed)
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
));

-- limit_waits: others may lock the few rows that go by cascade; transactions that wait for us must not wait long
SET LOCAL lock_timeout = '300ms';

-- delete_organization: delete the row, once its other rows are gone, unless it was restored; and leave a trace of it
WITH gone AS (
    DELETE FROM forecasts.organizations AS o
    WHERE id = %(id)s AND deleted_at < %(before)s
        AND NOT EXISTS (SELECT FROM forecasts.notifications WHERE organization_id = o.id)
        AND NOT EXISTS (SELECT FROM forecasts.watchpoints WHERE organization_id = o.id)
        AND NOT EXISTS (SELECT FROM forecasts.idempotency_keys WHERE organization_id = o.id)
    RETURNING id, deleted_at
)
INSERT INTO forecasts.audit_logs (organization_id, actor, action, entity_type, entity_id, detail, created_at)
SELECT id, 'signalbox', 'organization.purged', 'organization', id, jsonb_build_object('deleted_at', deleted_at), %(now)s
FROM gone;
