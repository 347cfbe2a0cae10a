-- plan: name the oldest due records and the object they go into, unless a plan is open
-- Ids are listed one by one: they do not follow the order of created_at, so a range of either might come to include a
-- record that was written later. The object is named for the first and the last, which are in no other.
WITH oldest AS (
    SELECT id, created_at, detail FROM forecasts.audit_logs
    WHERE created_at < %(before)s
    ORDER BY created_at, id
    LIMIT %(most_records)s
), weighed AS (
    SELECT id, created_at, sum(octet_length(detail::text)) OVER (
        ORDER BY created_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS bytes_before
    FROM oldest
), batch AS (
    SELECT array_agg(id ORDER BY id) AS ids, min(created_at) AS since FROM weighed
    WHERE coalesce(bytes_before, 0) < %(most_bytes)s
)
INSERT INTO forecasts.audit_archives (key, first_id, last_id, ids, planned_at)
SELECT format(
    'audit_logs/%%s/%%s-%%s.jsonl.gz',
    to_char(since AT TIME ZONE 'UTC', 'YYYY/MM/DD'), ids[1], ids[cardinality(ids)]
), ids[1], ids[cardinality(ids)], ids, %(now)s
FROM batch WHERE ids IS NOT NULL
ON CONFLICT ((archived_at IS NULL)) WHERE archived_at IS NULL DO NOTHING;

-- find_open: the plan to carry out
SELECT key, ids FROM forecasts.audit_archives WHERE archived_at IS NULL;

-- fetch: read the records of a plan as lines of JSON, in the order of their ids; none once it is closed
-- One statement: a record that it misses was deleted while the plan was open, and not by a worker that closed it.
SELECT log.id, jsonb_build_object(
    'id', log.id,
    'organization_id', log.organization_id,
    'actor', log.actor,
    'action', log.action,
    'entity_type', log.entity_type,
    'entity_id', log.entity_id,
    'detail', log.detail,
    -- Written as JSON in UTC, whatever the session's time zone: the same bytes each time.
    'created_at', (to_json(log.created_at AT TIME ZONE 'UTC') #>> '{}') || 'Z'
)::text
FROM forecasts.audit_archives AS plan
JOIN forecasts.audit_logs AS log ON log.id = ANY (plan.ids)
WHERE plan.key = %(key)s AND plan.archived_at IS NULL
ORDER BY log.id;

-- drop_empty: drop a plan without any record left and nothing stored
DELETE FROM forecasts.audit_archives WHERE key = %(key)s AND archived_at IS NULL;

-- delete_and_close: delete exactly what was stored, and note where it is
WITH gone AS (
    DELETE FROM forecasts.audit_logs WHERE id = ANY (%(ids)s) RETURNING id
), closed AS (
    UPDATE forecasts.audit_archives
    SET archived_at = %(now)s, ids = NULL, row_count = cardinality(%(ids)s::bigint[]), bytes = %(bytes)s,
        sha256 = %(sha256)s
    WHERE key = %(key)s AND archived_at IS NULL
)
SELECT count(*) FROM gone;
