-- find: the document
SELECT tenant_id::text, kind FROM passports.documents
WHERE id = %(id)s AND (%(tenant)s::text IS NULL OR tenant_id::text = %(tenant)s);

-- known: the version that the job has made
SELECT v.id::text, e.payload ->> 'method', v.content
FROM passports.document_versions v
JOIN passports.events e
    ON e.tenant_id = v.tenant_id AND e.aggregate_type = 'DocumentVersion' AND e.aggregate_id = v.id AND e.seq = 1
WHERE v.ingest_job_id = %(job)s AND v.tenant_id = %(tenant)s;

-- lock: the document, so that versions are counted one by one
SELECT FROM passports.documents WHERE id = %(document)s AND tenant_id = %(tenant)s FOR NO KEY UPDATE;

-- add_version: the next version of the document, once for the job
INSERT INTO passports.document_versions
    (tenant_id, document_id, version, mime_type, content, source_url, ingest_job_id)
SELECT %(tenant)s, %(document)s, coalesce(max(version), 0) + 1, 'application/json', %(content)s, %(url)s, %(job)s
FROM passports.document_versions WHERE document_id = %(document)s AND tenant_id = %(tenant)s
ON CONFLICT (ingest_job_id) DO NOTHING
RETURNING id::text;
