-- known: what an earlier attempt has stored
SELECT storage_path, total_obligations, complete_count, pending_count, overdue_count, evidence_count,
       integrity_errors_count
FROM compliance.audit_packs WHERE id = %(pack_id)s AND company_id = %(company_id)s;

-- company: the live company, and its site
SELECT c.name, s.id IS NOT NULL, s.name
FROM compliance.companies c
LEFT JOIN compliance.sites s ON s.id = %(site_id)s AND s.company_id = c.id AND s.deleted_at IS NULL
WHERE c.id = %(company_id)s AND c.deleted_at IS NULL;

-- document: the live permit, of the site if there is one
SELECT title, permit_number, document_type, status, expiry_date::text
FROM compliance.documents
WHERE id = %(document_id)s AND company_id = %(company_id)s AND deleted_at IS NULL
  AND (%(site_id)s::uuid IS NULL OR site_id = %(site_id)s);

-- obligations: those with a deadline in the range or with none at all, with these deadlines and the day at their site
SELECT o.id::text AS id, s.name AS site, o.condition_reference AS reference,
       coalesce(o.summary, o.obligation_title) AS summary, o.original_text, o.category, o.frequency, o.status,
       (%(created_at)s::timestamptz AT TIME ZONE coalesce(s.timezone, c.timezone, 'UTC'))::date AS today,
       d.dates, d.statuses
FROM compliance.obligations o
JOIN compliance.companies c ON c.id = o.company_id
LEFT JOIN compliance.sites s ON s.id = o.site_id AND s.company_id = o.company_id
CROSS JOIN LATERAL (
    SELECT count(*) AS number,
           array_agg(due_date ORDER BY due_date) FILTER (WHERE due_date BETWEEN %(start)s AND %(end)s) AS dates,
           array_agg(status ORDER BY due_date) FILTER (WHERE due_date BETWEEN %(start)s AND %(end)s) AS statuses
    FROM compliance.deadlines
    -- `IS NOT DISTINCT FROM`: else the planner reads all deadlines of the company for each of its obligations.
    WHERE obligation_id = o.id AND company_id IS NOT DISTINCT FROM o.company_id AND due_date IS NOT NULL
) d
WHERE o.company_id = %(company_id)s AND o.deleted_at IS NULL AND s.deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM compliance.documents p WHERE p.id = o.document_id AND p.deleted_at IS NOT NULL)
  AND (d.number = 0 OR d.dates IS NOT NULL)
  AND CASE WHEN %(document_id)s::uuid IS NOT NULL THEN o.document_id = %(document_id)s
           ELSE %(site_id)s::uuid IS NULL OR o.site_id = %(site_id)s END
  AND (%(statuses)s::text[] IS NULL OR o.status = ANY (%(statuses)s))
  AND (%(categories)s::text[] IS NULL OR o.category = ANY (%(categories)s))
ORDER BY o.condition_reference, o.id;

-- evidence: the live files that are linked to these obligations, the newest first
SELECT DISTINCT l.obligation_id::text, e.id::text, e.file_name, e.file_type, e.mime_type, e.file_size_bytes,
       e.file_hash, e.storage_path, e.upload_date
FROM compliance.obligation_evidence_links l
JOIN compliance.evidence_items e
    ON e.id = l.evidence_id AND e.company_id = %(company_id)s AND e.deleted_at IS NULL
WHERE l.obligation_id = ANY (%(obligations)s::uuid[]) AND l.unlinked_at IS NULL
ORDER BY e.upload_date DESC NULLS LAST, e.id::text;

-- store: the pack, once, with a line in the audit log
WITH stored AS (
    INSERT INTO compliance.audit_packs
        (id, document_id, site_id, company_id, pack_type, recipient_type, recipient_name, purpose, date_range_start,
         date_range_end, filters_applied, storage_path, output_format, file_size_bytes, total_obligations,
         complete_count, pending_count, overdue_count, evidence_count, integrity_errors_count, integrity_report,
         generation_time_ms, generated_by)
    VALUES (%(pack_id)s, %(document_id)s, %(site_id)s, %(company_id)s, %(pack_type)s, %(recipient_type)s,
            %(recipient_name)s, %(purpose)s, %(start)s, %(end)s, %(filters)s, %(storage_path)s, %(output_format)s,
            %(bytes)s, %(total_obligations)s, %(complete_count)s, %(pending_count)s, %(overdue_count)s,
            %(evidence_count)s, %(integrity_errors_count)s, %(integrity_report)s, %(took_ms)s, %(requested_by)s)
    ON CONFLICT (id) DO NOTHING
    RETURNING id
)
INSERT INTO compliance.audit_logs (company_id, user_id, action_type, entity_type, entity_id, new_values)
SELECT %(company_id)s, %(requested_by)s, 'AUDIT_PACK_GENERATED', 'AUDIT_PACK', id, %(metadata)s FROM stored;
