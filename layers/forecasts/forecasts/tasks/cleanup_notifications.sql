-- weigh: how many would go, and how many rows there are: these only as far as decides whether that is too large a share
WITH due AS (
    SELECT count(*) AS number FROM (
        SELECT FROM forecasts.notifications WHERE created_at < %(before)s LIMIT %(most)s::bigint
    ) AS one
)
SELECT number, (
    SELECT count(*) FROM (
        SELECT FROM forecasts.notifications LIMIT (SELECT ceil(number / %(share)s)::bigint FROM due)
    ) AS one
)
FROM due;

-- delete_old: one batch from a point of the index notifications_by_age on; their deliveries go with them
-- SKIP LOCKED: two runs share the work. By ctid, as a join by the key would look each row up again; the lock keeps it
-- in its place.
WITH due AS MATERIALIZED (
    SELECT ctid AS place, created_at FROM forecasts.notifications
    WHERE created_at >= %(after)s::timestamptz AND created_at < %(before)s
    ORDER BY created_at
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM forecasts.notifications WHERE ctid = ANY (ARRAY(SELECT place FROM due))
)
SELECT count(*), max(created_at)::text FROM due;
