-- create: store a token; only its hash is kept
INSERT INTO signalbox.api_tokens (name, role, tenant, token_hash, created_by, expires_at)
VALUES (%(name)s, %(role)s, %(tenant)s, %(hash)s, %(by)s, %(expires_at)s)
RETURNING id::text, name, role, tenant, created_at, created_by, expires_at;

-- find: return whose token this is, if it may still be used, and record its use, at most once an hour
WITH used AS (
    UPDATE signalbox.api_tokens SET last_used_at = clock_timestamp()
    WHERE token_hash = %(hash)s AND coalesce(last_used_at < clock_timestamp() - interval '1 hour', true)
)
SELECT name, role, tenant FROM signalbox.api_tokens
WHERE token_hash = %(hash)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp());

-- list: return the tokens, the newest first; revoked ones are kept for the audit log's sake
SELECT id::text, name, role, tenant, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by
FROM signalbox.api_tokens
ORDER BY revoked_at IS NOT NULL, id DESC
LIMIT 1000;

-- revoke: end the use of a token
UPDATE signalbox.api_tokens SET revoked_at = clock_timestamp(), revoked_by = %(by)s
WHERE name = %(name)s AND revoked_at IS NULL
RETURNING id::text, name, role, tenant, created_at, created_by, expires_at, revoked_at, revoked_by;
