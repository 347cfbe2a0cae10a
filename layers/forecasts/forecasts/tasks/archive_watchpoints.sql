-- archive: archive and note one page of the watchpoints whose event has passed, in one statement
-- SKIP LOCKED: two runs share the work, and one that its owner is changing waits for the next run. The order is that of
-- idx_watchpoints_archive_candidates. NO KEY does not block notifications that refer to it. An array of ids: for a join
-- the planner may read the whole table again for each page.
WITH passed AS (
    SELECT id FROM forecasts.watchpoints
    WHERE status = 'active' AND time_window_end IS NOT NULL AND time_window_end < %(before)s
        AND (time_window_end, id) > (%(after_end)s, %(after_id)s)
    ORDER BY time_window_end, id
    LIMIT %(size)s
    FOR NO KEY UPDATE SKIP LOCKED
), archived AS (
    UPDATE forecasts.watchpoints
    SET status = 'archived', archived_at = %(now)s, archived_reason = 'event_passed'
    WHERE id = ANY (ARRAY(SELECT id FROM passed))
    RETURNING id, organization_id, tile_id, time_window_end
), noted AS (
    INSERT INTO forecasts.audit_logs (organization_id, actor, action, entity_type, entity_id, detail, created_at)
    SELECT organization_id, 'signalbox', 'watchpoint.archived', 'watchpoint', id, '{"reason": "event_passed"}', %(now)s
    FROM archived
)
SELECT id::text, tile_id, time_window_end FROM archived;
