-- find: a page of the active parameters of active permits
SELECT p.id::text, 1
FROM compliance.parameters p
JOIN compliance.documents d
    ON d.id = p.document_id AND d.company_id = p.company_id AND d.status = 'ACTIVE' AND d.deleted_at IS NULL
WHERE p.company_id = %(company_id)s AND p.is_active
  AND (%(site_id)s::uuid IS NULL OR p.site_id = %(site_id)s)
  AND (%(parameter_id)s::uuid IS NULL OR p.id = %(parameter_id)s)
  AND (%(after)s::uuid IS NULL OR p.id > %(after)s)
  AND NOT EXISTS (SELECT 1 FROM compliance.sites s WHERE s.id = p.site_id AND s.deleted_at IS NOT NULL)
ORDER BY p.id LIMIT %(limit)s;

-- count: how many the company has at most
SELECT count(*) FROM compliance.parameters p
WHERE p.company_id = %(company_id)s AND p.is_active
  AND (%(site_id)s::uuid IS NULL OR p.site_id = %(site_id)s)
  AND (%(parameter_id)s::uuid IS NULL OR p.id = %(parameter_id)s);

-- read: some parameters, with the day in their zone, and the day after which the next sample is due
SELECT p.id::text, p.site_id::text, coalesce(s.name, ''), coalesce(p.parameter_type, ''), p.sampling_frequency,
       coalesce(p.sampling_weekday, 0), p.next_sample_date, t.today,
       coalesce((SELECT max(l.sample_date) FROM compliance.lab_results l
                 WHERE l.parameter_id = p.id AND l.sample_date <= t.today),
                (p.created_at AT TIME ZONE z.zone)::date),
       array(SELECT n.dedupe_key FROM compliance.notifications n
             WHERE n.company_id = p.company_id AND n.entity_id = p.id AND n.alert_type = 'EVIDENCE_REMINDER')
FROM compliance.parameters p
JOIN compliance.companies c ON c.id = p.company_id
LEFT JOIN compliance.sites s ON s.id = p.site_id AND s.company_id = p.company_id
CROSS JOIN LATERAL (SELECT coalesce(s.timezone, c.timezone, 'UTC') AS zone) z
CROSS JOIN LATERAL (SELECT (%(slot)s::timestamptz AT TIME ZONE z.zone)::date AS today) t
WHERE p.id = ANY (%(ids)s::uuid[]) AND p.company_id = %(company_id)s
ORDER BY p.id;

-- store: the next dates, and that they were set
WITH changed AS (
    SELECT * FROM jsonb_to_recordset(%(changed)s) AS c (id uuid, next_sample_date date, sampling_frequency text)
), stored AS (
    UPDATE compliance.parameters p SET next_sample_date = c.next_sample_date, updated_at = now()
    FROM changed c WHERE p.id = c.id AND p.company_id = %(company_id)s
)
INSERT INTO compliance.audit_logs (company_id, action_type, entity_type, entity_id, new_values)
SELECT %(company_id)s, 'SAMPLING_SCHEDULE_GENERATED', 'PARAMETER', c.id,
       jsonb_build_object('next_sample_date', c.next_sample_date, 'sampling_frequency', c.sampling_frequency)
FROM changed c;
