-- list_due: one page of those to delete, the longest archived first, by the index watchpoints_archived
SELECT id, archived_at::text FROM forecasts.watchpoints
WHERE status = 'archived' AND archived_at < %(before)s
    AND (archived_at, id) > (%(after)s::timestamptz, %(after_id)s)
ORDER BY archived_at, id
LIMIT %(page)s;

-- delete_notifications: delete one batch of these watchpoints' notifications; their deliveries go with them
-- FOR SHARE: taking a watchpoint out of the archive waits for the batch, and no batch begins after that.
-- SKIP LOCKED: two runs share the work. By ctid: the lock keeps a row in its place, and a join would look it up again.
WITH doomed AS MATERIALIZED (
    SELECT id FROM forecasts.watchpoints
    WHERE id = ANY (%(ids)s) AND status = 'archived' AND archived_at < %(before)s
    FOR SHARE SKIP LOCKED
)
DELETE FROM forecasts.notifications WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM forecasts.notifications
    WHERE watchpoint_id = ANY (ARRAY(SELECT id FROM doomed))
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
));

-- delete_watchpoints: delete those of the page that are still archived and have no notifications left
-- Rows locked by others are left for the next run, so that it waits for no lock.
DELETE FROM forecasts.watchpoints WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM forecasts.watchpoints AS w
    WHERE id = ANY (%(ids)s) AND status = 'archived' AND archived_at < %(before)s
        AND NOT EXISTS (SELECT FROM forecasts.notifications AS n WHERE n.watchpoint_id = w.id)
    FOR UPDATE SKIP LOCKED
));
