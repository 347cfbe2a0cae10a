-- lock: the version, with its document of the same tenant
SELECT v.tenant_id::text, d.kind, v.status, v.content
FROM passports.document_versions v JOIN passports.documents d ON d.id = v.document_id AND d.tenant_id = v.tenant_id
WHERE v.id = %(id)s AND (%(tenant)s::text IS NULL OR v.tenant_id::text = %(tenant)s)
FOR NO KEY UPDATE OF v;

-- add_fact: one fact
INSERT INTO passports.facts
    (tenant_id, fact_type, fact_key, schema_version, source_doc_version_id, payload, payload_canonical, payload_hash)
VALUES (%(tenant)s, %(fact_type)s, %(key)s, %(schema_version)s, %(id)s, %(payload)s, %(canonical)s, %(hash)s);

-- set_status: what has become of the version
UPDATE passports.document_versions SET status = %(status)s, rejection = %(rejection)s
WHERE id = %(id)s AND tenant_id = %(tenant)s;
