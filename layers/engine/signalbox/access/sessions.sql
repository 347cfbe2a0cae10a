-- begin: store a session of a token that may be used, and forget a batch of those that have ended
WITH ended AS (
    DELETE FROM signalbox.api_sessions
    WHERE secret_hash IN (
        SELECT secret_hash FROM signalbox.api_sessions WHERE expires_at < clock_timestamp()
        ORDER BY expires_at LIMIT 100 FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO signalbox.api_sessions (secret_hash, token_id, expires_at)
SELECT %(secret_hash)s, id, least(clock_timestamp() + %(lasts)s, expires_at)
FROM signalbox.api_tokens WHERE token_hash = %(token_hash)s;

-- find: return whose session this is, if it has not expired, nor its token, nor has that been revoked
SELECT t.name, t.role, t.tenant
FROM signalbox.api_sessions AS s JOIN signalbox.api_tokens AS t ON t.id = s.token_id
WHERE s.secret_hash = %(secret_hash)s AND s.expires_at > clock_timestamp()
    AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp());

-- end: forget a session
DELETE FROM signalbox.api_sessions WHERE secret_hash = %(secret_hash)s;
