-- begin: note that a request with this key begins, and forget some keys that are older than a day
-- A key whose request began two minutes ago and has no response is taken over: its function died.
WITH old AS (
    DELETE FROM signalbox.api_requests WHERE (caller, key) IN (
        SELECT r.caller, r.key FROM signalbox.api_requests AS r
        WHERE r.began_at < clock_timestamp() - interval '1 day' AND (r.caller, r.key) <> (%(caller)s, %(key)s)
        ORDER BY r.began_at LIMIT 20 FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO signalbox.api_requests AS r (caller, key, request_hash) VALUES (%(caller)s, %(key)s, %(hash)s)
ON CONFLICT (caller, key) DO UPDATE SET began_at = clock_timestamp(), request_hash = excluded.request_hash,
    status = NULL, body = NULL
WHERE r.began_at < clock_timestamp() - CASE WHEN r.status IS NULL THEN interval '2 minutes' ELSE interval '1 day' END
    AND (r.request_hash = excluded.request_hash OR r.began_at < clock_timestamp() - interval '1 day')
RETURNING true;

-- find: return what is known of the request with this key
SELECT request_hash = %(hash)s, status, body FROM signalbox.api_requests WHERE caller = %(caller)s AND key = %(key)s;

-- finish: keep the response for those who ask again
UPDATE signalbox.api_requests SET status = %(status)s, body = %(body)s WHERE caller = %(caller)s AND key = %(key)s;

-- forget: let the request be tried again
DELETE FROM signalbox.api_requests WHERE caller = %(caller)s AND key = %(key)s AND status IS NULL;
