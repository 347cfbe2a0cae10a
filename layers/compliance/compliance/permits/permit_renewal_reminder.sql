-- find: a page of the documents that may expire soon: a day more on both sides, since `read` knows each one's zone
SELECT d.id::text, 1
FROM compliance.documents d
WHERE d.company_id = %(company_id)s AND d.status = 'ACTIVE' AND d.deleted_at IS NULL
  AND d.expiry_date BETWEEN (%(slot)s::timestamptz AT TIME ZONE 'UTC')::date - 1
                        AND (%(slot)s::timestamptz AT TIME ZONE 'UTC')::date + %(most_days)s + 1
  AND (%(site_id)s::uuid IS NULL OR d.site_id = %(site_id)s)
  AND (%(after)s::uuid IS NULL OR d.id > %(after)s)
  AND NOT EXISTS (SELECT 1 FROM compliance.sites s WHERE s.id = d.site_id AND s.deleted_at IS NOT NULL)
ORDER BY d.id LIMIT %(limit)s;

-- read: those of them that do, and the nearest level that anybody was reminded at of this expiry date
SELECT d.id::text, d.site_id::text, coalesce(d.title, ''), coalesce(d.document_type, 'permit'),
       coalesce(d.permit_number, ''), d.expiry_date, d.expiry_date - t.today,
       (SELECT min((n.metadata ->> 'reminder_days')::int) FROM compliance.notifications n
        WHERE n.company_id = d.company_id AND n.entity_id = d.id AND n.alert_type = 'DEADLINE_ALERT'
          AND n.metadata ->> 'reminder_type' = 'PERMIT_RENEWAL'
          AND n.metadata ->> 'expiry_date' = d.expiry_date::text)
FROM compliance.documents d
JOIN compliance.companies c ON c.id = d.company_id
LEFT JOIN compliance.sites s ON s.id = d.site_id AND s.company_id = d.company_id
CROSS JOIN LATERAL (
    SELECT (%(slot)s::timestamptz AT TIME ZONE coalesce(s.timezone, c.timezone, 'UTC'))::date AS today
) t
WHERE d.id = ANY (%(ids)s::uuid[]) AND d.company_id = %(company_id)s
  AND d.expiry_date BETWEEN t.today AND t.today + %(most_days)s
ORDER BY d.expiry_date, d.id;
