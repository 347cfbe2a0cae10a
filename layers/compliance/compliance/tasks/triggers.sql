-- companies: a page of the live ones
SELECT id::text FROM compliance.companies
WHERE deleted_at IS NULL AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id LIMIT %(limit)s;

-- consultants: a page of those who have clients
SELECT a.consultant_id::text FROM compliance.consultant_client_assignments a
WHERE a.status = 'ACTIVE' AND (%(after)s::uuid IS NULL OR a.consultant_id > %(after)s)
GROUP BY a.consultant_id ORDER BY a.consultant_id LIMIT %(limit)s;

-- permits: a page of the active documents of live companies that have active generators
SELECT d.id::text, d.company_id::text
FROM compliance.documents d
JOIN compliance.companies c ON c.id = d.company_id AND c.deleted_at IS NULL
WHERE d.status = 'ACTIVE' AND d.deleted_at IS NULL AND (%(after)s::uuid IS NULL OR d.id > %(after)s)
  AND EXISTS (SELECT 1 FROM compliance.generators g
              WHERE g.document_id = d.id AND g.company_id = d.company_id AND g.is_active AND g.deleted_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM compliance.sites s WHERE s.id = d.site_id AND s.deleted_at IS NOT NULL)
ORDER BY d.id LIMIT %(limit)s;
