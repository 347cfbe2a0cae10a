-- take: take one page of the deliveries whose quiet hours have ended, with the contents of their messages
-- SKIP LOCKED: two runs share the work. Marked before they are sent and in the same transaction: the mark is invisible
-- before the commit, and one statement costs two thirds of a query and an update by id. It uses an array of ids, since
-- for a join the planner may read the whole table again for each page. The planner must not see the limit: it takes the
-- conditions for independent, expects less than a page, and would fetch and sort all that is due for each.
WITH due AS (
    SELECT id FROM forecasts.notification_deliveries
    WHERE status = 'deferred' AND next_retry_at <= %(now)s
        AND (next_retry_at, id) > (%(after_retry)s, %(after_id)s)
    ORDER BY next_retry_at, id
    LIMIT (SELECT %(size)s)
    FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
    UPDATE forecasts.notification_deliveries SET status = 'pending'
    WHERE id = ANY (ARRAY(SELECT id FROM due))
    RETURNING id, notification_id, next_retry_at
)
SELECT taken.id::text, taken.notification_id::text, taken.next_retry_at, notification.payload::text,
    organization.id::text, organization.timezone, (organization.notification_preferences -> 'quiet_hours')::text
FROM taken
JOIN forecasts.notifications AS notification ON notification.id = taken.notification_id
JOIN forecasts.organizations AS organization ON organization.id = notification.organization_id;

-- put_back: defer those of a page that may not go out now, each until its own time
UPDATE forecasts.notification_deliveries AS delivery SET status = 'deferred', next_retry_at = kept.until
FROM unnest(%(ids)s::uuid[], %(untils)s::timestamptz[]) AS kept (id, until)
WHERE delivery.id = kept.id;
