-- list_due: list one page of the organisations whose digest is due
-- SKIP LOCKED: two runs share the work. NO KEY does not block rows that refer to an organisation.
SELECT id::text, next_digest_at, timezone, notification_preferences
FROM forecasts.organizations
WHERE next_digest_at <= %(now)s AND deleted_at IS NULL
    AND (next_digest_at, id) > (%(after_due)s, %(after_id)s)
ORDER BY next_digest_at, id
LIMIT %(size)s
FOR NO KEY UPDATE SKIP LOCKED;

-- plan_next: store when each organisation's next digest is due
UPDATE forecasts.organizations AS organization SET next_digest_at = planned.due
FROM unnest(%(ids)s::uuid[], %(dues)s::timestamptz[]) AS planned (id, due)
WHERE organization.id = planned.id;
