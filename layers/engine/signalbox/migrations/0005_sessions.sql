-- serves: 1
-- Browsers that are logged in to the pages.

CREATE TABLE signalbox.api_sessions (
    secret_hash bytea PRIMARY KEY,
    token_id uuid NOT NULL REFERENCES signalbox.api_tokens ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE signalbox.api_sessions IS 'Browsers that are logged in, by the hashes of their cookies; a session ends with its token.';
CREATE INDEX api_sessions_by_expiry ON signalbox.api_sessions (expires_at);
CREATE INDEX api_sessions_by_token ON signalbox.api_sessions (token_id);
