-- known: what an earlier attempt has stored
SELECT is_validated, validation_errors, total_run_hours FROM compliance.aer_documents
WHERE id = %(aer_id)s AND company_id = %(company_id)s;

-- document: the permit, where it and its company are live
SELECT c.name, s.name, d.title, d.permit_number, d.site_id::text
FROM compliance.documents d
JOIN compliance.companies c ON c.id = d.company_id AND c.deleted_at IS NULL
LEFT JOIN compliance.sites s ON s.id = d.site_id AND s.company_id = d.company_id
WHERE d.id = %(document_id)s AND d.company_id = %(company_id)s AND d.deleted_at IS NULL
  AND s.deleted_at IS NULL;

-- generators: the permit's active ones, each with its hours and its fuel of the period
SELECT g.id::text AS id, g.generator_identifier AS identifier, g.generator_type AS type, g.capacity_mw, g.fuel_type,
       g.annual_run_hour_limit AS hour_limit, count(r.id) AS record_count,
       coalesce(sum(r.hours_recorded), 0) AS hours, coalesce(sum(r.fuel_consumption), 0) AS fuel
FROM compliance.generators g
LEFT JOIN compliance.run_hour_records r
    ON r.generator_id = g.id AND r.recording_date BETWEEN %(start)s AND %(end)s AND (%(drafts)s OR NOT r.is_draft)
WHERE g.document_id = %(document_id)s AND g.company_id = %(company_id)s AND g.is_active AND g.deleted_at IS NULL
GROUP BY g.id ORDER BY g.generator_identifier, g.id;

-- tests: the stack tests of these generators, the latest first
SELECT t.generator_id::text, t.test_date, t.nox_rate, t.so2_rate, t.co_rate, t.particulates_rate, t.compliance_status
FROM compliance.stack_tests t JOIN compliance.generators g ON g.id = t.generator_id AND g.company_id = %(company_id)s
WHERE t.generator_id = ANY (%(generators)s::uuid[]) AND t.test_date BETWEEN %(start)s AND %(end)s
  AND (%(drafts)s OR NOT t.is_draft)
ORDER BY t.test_date DESC, t.created_at DESC, t.id DESC;

-- incidents: what happened to these generators
SELECT i.generator_id::text, i.incident_date, i.description
FROM compliance.incidents i JOIN compliance.generators g ON g.id = i.generator_id AND g.company_id = %(company_id)s
WHERE i.generator_id = ANY (%(generators)s::uuid[]) AND i.incident_date BETWEEN %(start)s AND %(end)s
ORDER BY i.incident_date, i.generator_id, i.id;

-- store: the report, once
INSERT INTO compliance.aer_documents
    (id, document_id, company_id, reporting_period_start, reporting_period_end, submission_deadline, status,
     generator_data, fuel_consumption_data, emissions_data, incidents_data, total_run_hours, is_validated,
     validation_errors, generated_file_path, generated_csv_path, generated_at, created_by)
VALUES (%(aer_id)s, %(document_id)s, %(company_id)s, %(start)s, %(end)s, %(submission_deadline)s, 'DRAFT',
        %(generator_data)s, %(fuel_data)s, %(emissions_data)s, %(incidents_data)s, %(total_hours)s, %(is_validated)s,
        %(faults)s, %(pdf_path)s, %(csv_path)s, now(), %(requested_by)s)
ON CONFLICT (id) DO NOTHING;
