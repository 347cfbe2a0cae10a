-- find: a page of the documents of module 1 that were read, and changed since they were scanned
SELECT d.id::text, 1
FROM compliance.documents d JOIN compliance.modules m ON m.id = d.module_id AND m.module_code = 'MODULE_1'
WHERE d.company_id = %(company_id)s AND d.status = 'ACTIVE' AND d.deleted_at IS NULL
  AND d.extraction_status = 'COMPLETED' AND d.extracted_text IS NOT NULL
  AND (NOT %(recent_only)s OR d.updated_at IS DISTINCT FROM d.cross_sell_scanned_at)
  AND (%(document_id)s::uuid IS NULL OR d.id = %(document_id)s)
  AND (%(site_id)s::uuid IS NULL OR d.site_id = %(site_id)s)
  AND (%(after)s::uuid IS NULL OR d.id > %(after)s)
  AND NOT EXISTS (SELECT 1 FROM compliance.sites s WHERE s.id = d.site_id AND s.deleted_at IS NOT NULL)
ORDER BY d.id LIMIT %(limit)s;

-- count: how many the company has at most
SELECT count(*)
FROM compliance.documents d JOIN compliance.modules m ON m.id = d.module_id AND m.module_code = 'MODULE_1'
WHERE d.company_id = %(company_id)s AND d.status = 'ACTIVE' AND d.deleted_at IS NULL
  AND d.extraction_status = 'COMPLETED' AND d.extracted_text IS NOT NULL
  AND (NOT %(recent_only)s OR d.updated_at IS DISTINCT FROM d.cross_sell_scanned_at)
  AND (%(document_id)s::uuid IS NULL OR d.id = %(document_id)s)
  AND (%(site_id)s::uuid IS NULL OR d.site_id = %(site_id)s);

-- modules: the active ones with keywords that the company has not activated
SELECT m.id::text, coalesce(m.module_name, m.module_code, ''), m.cross_sell_keywords
FROM compliance.modules m
WHERE m.is_active AND array_length(m.cross_sell_keywords, 1) > 0
  AND NOT EXISTS (SELECT 1 FROM compliance.module_activations a
                  WHERE a.module_id = m.id AND a.company_id = %(company_id)s AND a.status = 'ACTIVE')
ORDER BY m.module_code, m.id;

-- read: what was read in some documents
SELECT d.id::text, d.site_id::text, d.extracted_text
FROM compliance.documents d WHERE d.id = ANY (%(ids)s::uuid[]) AND d.company_id = %(company_id)s ORDER BY d.id;

-- store: the suggestions that are new
WITH found AS (
    SELECT * FROM jsonb_to_recordset(%(found)s) AS f (
        document_id text, site_id uuid, module_id uuid, name text, keywords jsonb, confidence numeric)
), created AS (
    INSERT INTO compliance.cross_sell_triggers
        (company_id, target_module_id, trigger_type, trigger_source, detected_keywords, confidence, status)
    SELECT %(company_id)s, f.module_id, 'keyword', f.document_id,
           array(SELECT jsonb_array_elements_text(f.keywords)), f.confidence, 'pending'
    FROM found f
    ON CONFLICT (company_id, target_module_id, trigger_source) DO NOTHING
    RETURNING id, target_module_id, trigger_source, detected_keywords
)
SELECT c.id::text, f.site_id::text, f.module_id::text, f.name, c.detected_keywords[1]
FROM created c JOIN found f ON f.document_id = c.trigger_source AND f.module_id = c.target_module_id;

-- set_scanned: that what these documents say today is known; `updated_at` stays
UPDATE compliance.documents d SET cross_sell_scanned_at = d.updated_at
WHERE d.id = ANY (%(ids)s::uuid[]) AND d.company_id = %(company_id)s;
