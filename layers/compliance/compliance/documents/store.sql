-- find: the document, locked against another worker that ends its extraction
SELECT d.id::text, d.company_id::text, d.site_id::text, d.title, d.document_type, m.module_code, d.extraction_status,
       coalesce(d.is_native_pdf IS FALSE OR d.ocr_confidence < 0.8, false),
       coalesce(d.page_count >= 50 OR d.file_size_bytes >= 10000000, false),
       d.uploaded_by::text, c.deleted_at IS NOT NULL
FROM compliance.documents d
JOIN compliance.companies c ON c.id = d.company_id
LEFT JOIN compliance.modules m ON m.id = d.module_id
WHERE d.id = %(document_id)s AND d.deleted_at IS NULL
FOR NO KEY UPDATE OF d;

-- find_log: what this extraction has come to, else the last one of the document
SELECT extraction_id::text, obligations_extracted, flagged_for_review, ocr_required, ocr_confidence::float8,
       coalesce(metadata -> 'chunks', '[]')
FROM compliance.extraction_logs WHERE document_id = %(document_id)s
ORDER BY extraction_id IS NOT DISTINCT FROM %(extraction_id)s::uuid DESC, extraction_timestamp DESC, id DESC LIMIT 1;

-- begin: the document is being read
UPDATE compliance.documents SET extraction_status = 'PROCESSING', error_message = NULL, updated_at = now()
WHERE id = %(document_id)s AND company_id = %(company_id)s AND extraction_status <> 'PROCESSING';

-- store_text: the document's text, and how sure Textract is of it
UPDATE compliance.documents
SET extracted_text = %(text)s, ocr_confidence = coalesce(%(ocr_confidence)s, ocr_confidence), updated_at = now()
WHERE id = %(document_id)s AND company_id = %(company_id)s;

-- find_text: the document's text
SELECT coalesce(extracted_text, '') FROM compliance.documents
WHERE id = %(document_id)s AND company_id = %(company_id)s;

-- find_rules: the module's rules that are sure enough, the best first
SELECT id::text, pattern, confidence::float8, coalesce(extraction, '{}'), version FROM compliance.extraction_rules
WHERE module_code = %(module_code)s AND is_active AND confidence >= 0.90
ORDER BY confidence DESC, id;

-- replace: what earlier extractions found and nobody has reviewed, but for the chunks that are kept
UPDATE compliance.obligations SET deleted_at = now(), updated_at = now()
WHERE document_id = %(document_id)s AND company_id = %(company_id)s AND deleted_at IS NULL
    AND extraction_id IS NOT NULL AND review_status IN ('NOT_REQUIRED', 'PENDING')
    AND NOT coalesce(chunk_sha256 = ANY (%(kept)s::text[]), false);

-- count_kept: the obligations of the chunks that are kept
SELECT count(*) FROM compliance.obligations
WHERE document_id = %(document_id)s AND company_id = %(company_id)s AND deleted_at IS NULL
    AND chunk_sha256 = ANY (%(kept)s::text[]);

-- add: the new obligations, and an item for each that needs a review
WITH made AS (
    INSERT INTO compliance.obligations
        (document_id, company_id, site_id, original_text, summary, category, condition_type, condition_reference,
         frequency, confidence_score, is_subjective, subjective_phrases, status, review_status, created_by,
         extraction_id, chunk_sha256)
    SELECT %(document_id)s, %(company_id)s, %(site_id)s, n.text, n.summary, n.category, n.condition_type,
           n.condition_reference, n.frequency, n.confidence_score, n.is_subjective, n.subjective_phrases, 'PENDING',
           CASE WHEN n.confidence_score < 0.85 THEN 'PENDING' ELSE 'NOT_REQUIRED' END, %(uploaded_by)s,
           %(extraction_id)s, n.chunk_sha256
    FROM jsonb_to_recordset(%(found)s) AS n (
        text text, summary text, category text, condition_type text, condition_reference text, frequency text,
        confidence_score numeric, is_subjective boolean, subjective_phrases text[], chunk_sha256 text)
    WHERE NOT EXISTS (
        SELECT FROM compliance.obligations o
        WHERE o.document_id = %(document_id)s AND o.company_id = %(company_id)s AND o.deleted_at IS NULL
            AND o.original_text = n.text)
    RETURNING *
), flagged AS (
    INSERT INTO compliance.review_queue_items
        (document_id, obligation_id, company_id, site_id, extraction_id, review_type, is_blocking, priority,
         original_data, review_status)
    SELECT document_id, id, company_id, site_id, extraction_id, 'LOW_CONFIDENCE', false, 1,
           jsonb_build_object(
               'text', original_text, 'summary', summary, 'category', category, 'condition_type', condition_type,
               'condition_reference', condition_reference, 'frequency', frequency,
               'confidence_score', confidence_score, 'is_subjective', is_subjective,
               'subjective_phrases', subjective_phrases),
           'PENDING'
    FROM made WHERE confidence_score < 0.85
    RETURNING id
)
SELECT (SELECT count(*) FROM made), (SELECT count(*) FROM flagged);

-- add_items: what a person must look at in the document
INSERT INTO compliance.review_queue_items
    (document_id, company_id, site_id, extraction_id, review_type, is_blocking, priority, original_data, review_status)
SELECT %(document_id)s, %(company_id)s, %(site_id)s, %(extraction_id)s, n.review_type, false, 1, n.original_data,
       'PENDING'
FROM jsonb_to_recordset(%(items)s) AS n (review_type text, original_data jsonb);

-- finish: the document has been read
UPDATE compliance.documents
SET extraction_status = %(status)s, extraction_completed_at = now(), error_message = NULL, updated_at = now()
WHERE id = %(document_id)s AND company_id = %(company_id)s;

-- add_log: what the extraction came to
INSERT INTO compliance.extraction_logs
    (document_id, extraction_id, extraction_timestamp, model_identifier, rule_library_version, segments_processed,
     obligations_extracted, flagged_for_review, processing_time_ms, ocr_required, ocr_confidence, errors, warnings,
     metadata)
VALUES (%(document_id)s, %(extraction_id)s, now(), %(model_id)s, %(version)s, %(segments)s, %(obligations_extracted)s,
        %(flagged_for_review)s, greatest(0, extract(epoch FROM now() - %(began)s::timestamptz) * 1000)::integer,
        %(ocr_required)s, %(ocr_confidence)s, %(errors)s, %(warnings)s, %(metadata)s)
RETURNING processing_time_ms;
