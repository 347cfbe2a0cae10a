-- weigh: how many would go, and how many rows there are: these only as far as decides whether that is too large a share
WITH due AS (
    SELECT count(*) AS number FROM (
        SELECT FROM forecasts.invites
        WHERE accepted_at IS NULL AND expires_at < %(before)s
        LIMIT %(most)s::bigint
    ) AS one
)
SELECT number, (
    SELECT count(*) FROM (
        SELECT FROM forecasts.invites LIMIT (SELECT ceil(number / %(share)s)::bigint FROM due)
    ) AS one
)
FROM due;

-- delete_expired: one batch from a point of the index invites_expired on
-- SKIP LOCKED: an invite that is being accepted is not waited for, and two runs share the work. By ctid, as a join by the
-- key would look each row up again; the lock keeps it in its place.
WITH due AS MATERIALIZED (
    SELECT ctid AS place, expires_at FROM forecasts.invites
    WHERE accepted_at IS NULL AND expires_at >= %(after)s::timestamptz AND expires_at < %(before)s
    ORDER BY expires_at
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM forecasts.invites WHERE ctid = ANY (ARRAY(SELECT place FROM due))
)
SELECT count(*), max(expires_at)::text FROM due;
