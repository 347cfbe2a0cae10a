-- list: return the failures by fingerprint with their counts, the newest one, and what is ignored of them
WITH found AS MATERIALIZED (
    SELECT fingerprint, job_type, status, severity, tenant, version, regressed_at, first_failed_at, last_failed_at
    FROM signalbox.dead_letter_jobs
    WHERE
        -- include: dead_letter_filter.matches
), kinds AS (
    SELECT fingerprint, max(job_type) AS job_type, count(*) AS total,
        count(*) FILTER (WHERE status = 'pending') AS pending,
        count(*) FILTER (WHERE status = 'investigating') AS investigating,
        count(*) FILTER (WHERE status = 'resolved') AS resolved,
        count(*) FILTER (WHERE status = 'ignored') AS ignored,
        count(*) FILTER (WHERE status = 'redriven') AS redriven,
        min(first_failed_at) AS first_seen, max(last_failed_at) AS last_seen,
        (ARRAY['critical', 'warning', 'info'])[min(array_position(ARRAY['critical', 'warning', 'info'], severity))] AS severity,
        max(regressed_at) FILTER (WHERE status IN ('pending', 'investigating')) AS regressed_at,
        count(*) OVER () AS all_kinds  -- the page may show fewer
    FROM found
    GROUP BY fingerprint
    ORDER BY max(last_failed_at) DESC, fingerprint
    LIMIT %(limit)s
), shown AS (
    SELECT found.* FROM found JOIN kinds USING (fingerprint)
), days AS (
    SELECT fingerprint, jsonb_object_agg(ago, number) AS numbers
    FROM (
        SELECT fingerprint, (%(now)s::timestamptz AT TIME ZONE 'UTC')::date - (last_failed_at AT TIME ZONE 'UTC')::date AS ago,
            count(*) AS number
        FROM shown GROUP BY fingerprint, ago
    ) AS d
    WHERE ago BETWEEN 0 AND 13
    GROUP BY fingerprint
), tenants AS (
    SELECT fingerprint, count(*) AS number, (array_agg(tenant ORDER BY number DESC, tenant))[1:5] AS names
    FROM (SELECT fingerprint, tenant, count(*) AS number FROM shown WHERE tenant IS NOT NULL GROUP BY fingerprint, tenant) AS t
    GROUP BY fingerprint
), versions AS (
    SELECT fingerprint, (array_agg(version ORDER BY seen DESC, version))[1:5] AS names
    FROM (
        SELECT fingerprint, version, max(last_failed_at) AS seen FROM shown WHERE version IS NOT NULL GROUP BY fingerprint, version
    ) AS v
    GROUP BY fingerprint
)
SELECT kinds.*, newest.*, coalesce(tenants.number, 0) AS tenants, coalesce(tenants.names, '{}') AS tenant_names,
    coalesce(versions.names, '{}') AS versions, ARRAY(
        SELECT coalesce((days.numbers ->> ago::text)::integer, 0) FROM generate_series(13, 0, -1) AS ago ORDER BY ago DESC
    ) AS trend,
    CASE WHEN rule.ignored_until > %(now)s THEN rule.ignored_until END AS ignored_until,
    nullif(rule.ignored_next_left, 0) AS ignored_next_left
FROM kinds
LEFT JOIN days ON days.fingerprint = kinds.fingerprint
LEFT JOIN tenants ON tenants.fingerprint = kinds.fingerprint
LEFT JOIN versions ON versions.fingerprint = kinds.fingerprint
LEFT JOIN signalbox.ignored_kinds AS rule ON rule.fingerprint = kinds.fingerprint
-- The index by fingerprint leads to the newest one. Long messages are read of that one alone.
CROSS JOIN LATERAL (
    SELECT failure_reason, error_type, left(final_error_message, 300) AS error_message, id::text AS newest_id
    FROM signalbox.dead_letter_jobs
    WHERE dead_letter_jobs.fingerprint = kinds.fingerprint
        AND
        -- include: dead_letter_filter.matches
    ORDER BY last_failed_at DESC, id DESC
    LIMIT 1
) AS newest
ORDER BY kinds.last_seen DESC, kinds.fingerprint;

-- has_letter: return whether there is a dead letter of this kind
SELECT EXISTS (SELECT FROM signalbox.dead_letter_jobs WHERE fingerprint = %(fingerprint)s);

-- ignore: ignore the kind's next failures in place of what was decided before, and record who did it and why
WITH kind AS (
    INSERT INTO signalbox.ignored_kinds AS known (fingerprint, ignored_until, ignored_next_left, ignored_by, reason)
    VALUES (%(fingerprint)s, %(until)s, %(next)s, %(by)s, %(reason)s)
    ON CONFLICT (fingerprint) DO UPDATE
    SET ignored_until = excluded.ignored_until, ignored_next_left = excluded.ignored_next_left,
        ignored_by = excluded.ignored_by, reason = excluded.reason, ignored_at = excluded.ignored_at
    RETURNING *
)
INSERT INTO signalbox.audit_log (actor, action, entity_type, entity_id, detail)
SELECT ignored_by, 'failure_kind.ignored', 'failure_kind', fingerprint, jsonb_strip_nulls(jsonb_build_object(
    'until', ignored_until, 'next', ignored_next_left, 'reason', reason
))
FROM kind;

-- stop_ignoring: let the kind's failures be pending again, and record who did it and why, unless it was over already
WITH ended AS (
    DELETE FROM signalbox.ignored_kinds WHERE fingerprint = %(fingerprint)s
    RETURNING *
)
INSERT INTO signalbox.audit_log (actor, action, entity_type, entity_id, detail)
SELECT %(by)s, 'failure_kind.ignore_ended', 'failure_kind', fingerprint, jsonb_strip_nulls(jsonb_build_object(
    'until', ignored_until, 'next_left', ignored_next_left, 'reason', %(reason)s::text
))
FROM ended WHERE ignored_until > clock_timestamp() OR ignored_next_left > 0;
