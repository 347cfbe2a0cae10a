-- find: a page of the obligations that are not done with, each with whether it recurs
SELECT o.id::text, (o.frequency IS NOT NULL AND o.base_date IS NOT NULL)::int
FROM compliance.obligations o
WHERE o.company_id = %(company_id)s AND o.deleted_at IS NULL AND o.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
  AND (%(site_id)s::uuid IS NULL OR o.site_id = %(site_id)s)
  AND (%(after)s::uuid IS NULL OR o.id > %(after)s)
  AND NOT EXISTS (SELECT 1 FROM compliance.sites s WHERE s.id = o.site_id AND s.deleted_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM compliance.documents d WHERE d.id = o.document_id AND d.deleted_at IS NOT NULL)
ORDER BY o.id LIMIT %(limit)s;

-- update: calculate the deadlines, the schedules and the statuses of some obligations
SELECT * FROM compliance.calculate_deadlines(%(ids)s::uuid[], %(company_id)s, %(slot)s, %(force)s);
