-- serves: 1
-- Who may use the HTTP API, and which of its requests were carried out once already.

CREATE TABLE signalbox.api_tokens (
    id uuid PRIMARY KEY DEFAULT signalbox.new_id(),
    name text NOT NULL,
    role text NOT NULL,
    tenant text,
    token_hash bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    revoked_by text,
    CONSTRAINT api_token_role_known CHECK (role IN ('viewer', 'operator')),
    CONSTRAINT api_token_found_by_hash UNIQUE (token_hash)
);
COMMENT ON TABLE signalbox.api_tokens IS 'Bearer tokens of the HTTP API, by their hashes; revoked ones stay, since the audit log names them.';
COMMENT ON COLUMN signalbox.api_tokens.tenant IS 'The tenant whose jobs alone the token gives access to; NULL: all.';
-- The audit log names tokens, so no two in use share a name.
CREATE UNIQUE INDEX api_token_in_use ON signalbox.api_tokens (name) WHERE revoked_at IS NULL;

CREATE TABLE signalbox.api_requests (
    caller text NOT NULL,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    status smallint,
    body text,
    PRIMARY KEY (caller, key)
);
COMMENT ON TABLE signalbox.api_requests IS 'Requests with an Idempotency-Key, for a day: one that is sent again gets the first one''s response.';
CREATE INDEX api_requests_by_age ON signalbox.api_requests (began_at);
