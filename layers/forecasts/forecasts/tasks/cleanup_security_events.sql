-- delete_oldest: one batch by the index security_events_by_age; two runs share the work, and what others hold is left alone
DELETE FROM forecasts.security_events WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM forecasts.security_events
    WHERE attempted_at < %(before)s
    ORDER BY attempted_at
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
));

-- count_pages: how far the table reaches
SELECT pg_relation_size('forecasts.security_events') / current_setting('block_size')::integer;

-- limit_waits: a row that somebody holds must not make us hold the rest of its pages for longer than this
SET LOCAL lock_timeout = '200ms';

-- delete_in_pages: what is due in a range of pages, without a lock beforehand, which would write each row twice
DELETE FROM forecasts.security_events
WHERE ctid >= %(first)s::tid AND ctid < %(end)s::tid AND attempted_at < %(before)s;

-- delete_unlocked_in_pages: the same, but for what others hold
DELETE FROM forecasts.security_events WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM forecasts.security_events
    WHERE ctid >= %(first)s::tid AND ctid < %(end)s::tid AND attempted_at < %(before)s
    FOR UPDATE SKIP LOCKED
));
