-- find: a page of the obligations that may be due: a day more on both sides, since `read` knows each one's zone
SELECT o.id::text, 1
FROM compliance.obligations o
WHERE o.company_id = %(company_id)s AND o.deleted_at IS NULL AND o.status IN ('PENDING', 'DUE_SOON', 'IN_PROGRESS')
  AND o.deadline_date BETWEEN (%(slot)s::timestamptz AT TIME ZONE 'UTC')::date - 1
                          AND (%(slot)s::timestamptz AT TIME ZONE 'UTC')::date + 8
  AND (%(site_id)s::uuid IS NULL OR o.site_id = %(site_id)s)
  AND (%(after)s::uuid IS NULL OR o.id > %(after)s)
  AND NOT EXISTS (SELECT 1 FROM compliance.sites s WHERE s.id = o.site_id AND s.deleted_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM compliance.documents d WHERE d.id = o.document_id AND d.deleted_at IS NOT NULL)
ORDER BY o.id LIMIT %(limit)s;

-- read: those of them that are due within 7 days, and whether evidence of this period is linked
SELECT o.id::text, o.site_id::text, coalesce(o.summary, o.obligation_title, ''), o.assigned_to::text, o.deadline_date,
       t.today,
       EXISTS (
           SELECT 1 FROM compliance.obligation_evidence_links l
           JOIN compliance.evidence_items e
               ON e.id = l.evidence_id AND e.company_id = o.company_id AND e.deleted_at IS NULL
           WHERE l.obligation_id = o.id AND l.unlinked_at IS NULL
             -- Evidence of an earlier period of what recurs is none.
             AND (period.start IS NULL OR (l.linked_at AT TIME ZONE t.zone)::date >= period.start)
       )
FROM compliance.obligations o
JOIN compliance.companies c ON c.id = o.company_id
LEFT JOIN compliance.sites p ON p.id = o.site_id AND p.company_id = o.company_id
CROSS JOIN LATERAL (SELECT coalesce(p.timezone, c.timezone, 'UTC') AS zone) z
CROSS JOIN LATERAL (SELECT z.zone, (%(slot)s::timestamptz AT TIME ZONE z.zone)::date AS today) t
LEFT JOIN LATERAL (
    SELECT d.compliance_period_start AS start FROM compliance.deadlines d
    WHERE d.obligation_id = o.id AND d.company_id = o.company_id AND d.due_date = o.deadline_date
      AND o.frequency <> 'ONE_TIME'
) period ON true
WHERE o.id = ANY (%(ids)s::uuid[]) AND o.company_id = %(company_id)s
  AND o.deadline_date BETWEEN t.today AND t.today + 7;
