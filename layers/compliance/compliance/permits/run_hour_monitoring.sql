-- find: a page of the active generators of live permits
SELECT g.id::text, 1
FROM compliance.generators g
JOIN compliance.documents d ON d.id = g.document_id AND d.company_id = g.company_id AND d.deleted_at IS NULL
WHERE g.company_id = %(company_id)s AND g.is_active AND g.deleted_at IS NULL
  AND (%(site_id)s::uuid IS NULL OR g.site_id = %(site_id)s)
  AND (%(generator_id)s::uuid IS NULL OR g.id = %(generator_id)s)
  AND (%(after)s::uuid IS NULL OR g.id > %(after)s)
  AND NOT EXISTS (SELECT 1 FROM compliance.sites s WHERE s.id = g.site_id AND s.deleted_at IS NOT NULL)
ORDER BY g.id LIMIT %(limit)s;

-- count: how many the company has at most
SELECT count(*) FROM compliance.generators g
WHERE g.company_id = %(company_id)s AND g.is_active AND g.deleted_at IS NULL
  AND (%(site_id)s::uuid IS NULL OR g.site_id = %(site_id)s)
  AND (%(generator_id)s::uuid IS NULL OR g.id = %(generator_id)s);

-- store: the hours of some generators since their year and the month began, and what people were told of them
UPDATE compliance.generators g
SET current_year_hours = h.year_hours, current_month_hours = h.month_hours, updated_at = now()
FROM (
    SELECT g.id, s.id AS site_id, p.year_start, p.month_start, sums.year_hours, sums.month_hours
    FROM compliance.generators g
    JOIN compliance.companies c ON c.id = g.company_id
    LEFT JOIN compliance.sites s ON s.id = g.site_id AND s.company_id = g.company_id
    CROSS JOIN LATERAL (
        SELECT (%(slot)s::timestamptz AT TIME ZONE coalesce(s.timezone, c.timezone, 'UTC'))::date AS today
    ) t
    CROSS JOIN LATERAL (
        SELECT (extract(year FROM t.today) - extract(year FROM g.anniversary_date))::int AS years
    ) y
    -- The anniversary of this year, or of the last one where it is still to come; the 29th of February is the 28th in
    -- other years.
    CROSS JOIN LATERAL (
        SELECT date_trunc('month', t.today)::date AS month_start,
               CASE WHEN g.anniversary_date IS NULL THEN date_trunc('year', t.today)::date
                    WHEN compliance.grid_date(g.anniversary_date, 'ANNUAL', y.years) <= t.today
                        THEN compliance.grid_date(g.anniversary_date, 'ANNUAL', y.years)
                    ELSE compliance.grid_date(g.anniversary_date, 'ANNUAL', y.years - 1) END AS year_start
    ) p
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(r.hours_recorded) FILTER (WHERE r.recording_date >= p.year_start), 0) AS year_hours,
               coalesce(sum(r.hours_recorded) FILTER (WHERE r.recording_date >= p.month_start), 0) AS month_hours
        FROM compliance.run_hour_records r
        WHERE r.generator_id = g.id AND r.recording_date BETWEEN least(p.year_start, p.month_start) AND t.today
    ) sums
    WHERE g.id = ANY (%(ids)s::uuid[]) AND g.company_id = %(company_id)s
) h
WHERE g.id = h.id AND g.company_id = %(company_id)s
RETURNING g.id::text, h.site_id::text, coalesce(g.generator_identifier, ''), g.annual_run_hour_limit,
          g.monthly_run_hour_limit, h.year_start, h.month_start, h.year_hours, h.month_hours,
          array(SELECT array[n.metadata ->> 'limit_kind', n.metadata ->> 'period_start', n.metadata ->> 'threshold_level']
                FROM compliance.notifications n
                WHERE n.company_id = g.company_id AND n.entity_id = g.id AND n.alert_type = 'BREACH');
