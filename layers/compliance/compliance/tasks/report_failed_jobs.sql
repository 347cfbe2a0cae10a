-- find: a page of the open dead letters that nobody was told of, each with the company and the person that it concerns
SELECT l.id::text, l.original_job_id::text, l.job_type, l.payload, l.redrives, greatest(l.total_attempts - 1, 0),
       l.failure_reason, coalesce(l.final_error_message, l.failure_reason),
       coalesce(doc.company_id, imp.company_id, pack.company_id, c.id)::text,
       coalesce(doc.site_id, imp.site_id, pack.site_id)::text,
       coalesce(doc.uploaded_by, imp.user_id, dist.requested_by, compliance.uuid_of(l.payload ->> 'requested_by'),
                compliance.uuid_of(l.payload ->> 'consultant_id'))::text,
       doc.title
FROM signalbox.dead_letter_jobs l
LEFT JOIN compliance.documents doc
    ON l.job_type = 'document_processing' AND doc.id = compliance.uuid_of(l.payload ->> 'document_id')
LEFT JOIN compliance.excel_imports imp
    ON l.job_type = 'excel_import_processing' AND imp.id = compliance.uuid_of(l.payload ->> 'import_id')
LEFT JOIN compliance.pack_distributions dist
    ON l.job_type = 'deliver_pack' AND dist.id = compliance.uuid_of(l.payload ->> 'distribution_id')
LEFT JOIN compliance.audit_packs pack
    ON l.job_type IN ('pack_distribution', 'deliver_pack')
   AND pack.id = coalesce(dist.pack_id, compliance.uuid_of(l.payload ->> 'pack_id'))
LEFT JOIN compliance.companies c ON c.id = compliance.uuid_of(l.payload ->> 'company_id')
WHERE l.source = 'job' AND l.original_job_id IS NOT NULL AND l.status IN ('pending', 'investigating')
  AND l.job_type = ANY (%(types)s)
  AND (%(after)s::uuid IS NULL OR l.id > %(after)s)
  -- ';' is the character after ':'
  AND NOT EXISTS (
      SELECT 1 FROM compliance.notifications n
      WHERE n.dedupe_key >= upper(l.job_type) || ':' || l.original_job_id || ':FAILED:' || l.redrives || ':'
        AND n.dedupe_key < upper(l.job_type) || ':' || l.original_job_id || ':FAILED:' || l.redrives || ';')
ORDER BY l.id LIMIT %(limit)s;

-- write_errors: an audit row for each failure that has none
INSERT INTO compliance.audit_logs
    (company_id, action_type, entity_type, entity_id, previous_values, new_values)
SELECT f.company_id, 'JOB_ERROR', 'BACKGROUND_JOB', l.original_job_id, l.payload,
       jsonb_build_object(
           'error_name', coalesce(l.error_type, l.failure_reason), 'error_message', l.final_error_message,
           'error_stack', l.final_error_stack, 'retry_count', greatest(l.total_attempts - 1, 0),
           'job_type', l.job_type,
           'context', coalesce(l.metadata, '{}') || jsonb_build_object('dead_letter_id', l.id, 'redrives', l.redrives))
FROM unnest(%(letters)s::uuid[], %(companies)s::uuid[]) f (letter, company_id)
JOIN signalbox.dead_letter_jobs l ON l.id = f.letter
WHERE NOT EXISTS (
      SELECT 1 FROM compliance.audit_logs a
      WHERE a.entity_id = l.original_job_id AND a.action_type = 'JOB_ERROR'
        AND a.new_values -> 'context' ->> 'dead_letter_id' = l.id::text
        AND a.new_values -> 'context' ->> 'redrives' = l.redrives::text);

-- user: a live user, and where to reach them
SELECT id::text, email, phone FROM compliance.users WHERE id = %(user_id)s AND deleted_at IS NULL;
