-- weigh: count the rows that would go, and the table's rows as far as needed to decide whether that share is too large
WITH due AS (
    SELECT count(*) AS number FROM (
        SELECT FROM {table} WHERE {only} AND {age} < %(before)s LIMIT %(most)s::bigint
    ) AS one
)
SELECT number, (
    SELECT count(*) FROM (SELECT FROM {table} LIMIT (SELECT ceil(number / %(share)s)::bigint FROM due)) AS one
)
FROM due;

-- delete_by_index: delete one batch from a point of the index on, and return how far it reached
-- It deletes by ctid, since a join by the key would look each row up again; the lock keeps the row in its place.
WITH due AS MATERIALIZED (
    SELECT ctid AS place, {age} AS age FROM {table}
    WHERE {only} AND {age} >= %(after)s::timestamptz AND {age} < %(before)s
    ORDER BY {age}
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT place FROM due))
)
SELECT count(*), max(age)::text FROM due;

-- count_pages: return how many pages the table has
SELECT pg_relation_size({name}) / current_setting('block_size')::integer;

-- limit_waits: limit how long a row that is locked by others makes us hold the rest of its pages
SET LOCAL lock_timeout = '200ms';

-- delete_in_pages: delete what is due in a range of pages; locking first would write each row twice
DELETE FROM {table}
WHERE ctid >= %(first)s::tid AND ctid < %(end)s::tid AND {only} AND {age} < %(before)s;

-- delete_unlocked_in_pages: do the same, and skip rows that others have locked
DELETE FROM {table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {table}
    WHERE ctid >= %(first)s::tid AND ctid < %(end)s::tid AND {only} AND {age} < %(before)s
    FOR UPDATE SKIP LOCKED
));
