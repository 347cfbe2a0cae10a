-- Two companies and their consultant. The story is told for 2026-01-05T02:30:00Z, a Monday, at which the demo fires every
-- rule; some slots lie before: that of the annual report is 15 January 2025.

INSERT INTO compliance.companies (id, name, timezone, deleted_at) VALUES
    ('c0000000-0000-4000-8000-000000000001', 'Northfield Recycling', 'Europe/London', NULL),
    ('c0000000-0000-4000-8000-000000000002', 'Harbour Foods', 'Europe/Lisbon', NULL),
    -- Gone: no job is submitted for it, and the consultant's assignment ends.
    ('c0000000-0000-4000-8000-000000000003', 'Old Mill', 'UTC', '2025-12-01T00:00:00Z');

INSERT INTO compliance.sites (id, company_id, name) VALUES
    ('50000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001', 'Northfield yard'),
    ('50000000-0000-4000-8000-000000000002', 'c0000000-0000-4000-8000-000000000002', 'Quayside cannery');

INSERT INTO compliance.users (id, email, phone) VALUES
    ('a0000000-0000-4000-8000-000000000001', 'owner@northfield.example', '+441632960001'),
    ('a0000000-0000-4000-8000-000000000002', 'site@northfield.example', NULL),
    ('a0000000-0000-4000-8000-000000000003', 'owner@harbour.example', NULL),
    ('a0000000-0000-4000-8000-000000000004', 'consultant@advice.example', NULL);

INSERT INTO compliance.user_roles (user_id, company_id, role) VALUES
    ('a0000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001', 'OWNER'),
    ('a0000000-0000-4000-8000-000000000002', 'c0000000-0000-4000-8000-000000000001', 'STAFF'),
    ('a0000000-0000-4000-8000-000000000003', 'c0000000-0000-4000-8000-000000000002', 'OWNER'),
    ('a0000000-0000-4000-8000-000000000004', 'c0000000-0000-4000-8000-000000000001', 'CONSULTANT'),
    ('a0000000-0000-4000-8000-000000000004', 'c0000000-0000-4000-8000-000000000002', 'CONSULTANT');

INSERT INTO compliance.user_site_assignments (user_id, site_id) VALUES
    ('a0000000-0000-4000-8000-000000000002', '50000000-0000-4000-8000-000000000001');

INSERT INTO compliance.consultant_client_assignments (consultant_id, client_company_id) VALUES
    ('a0000000-0000-4000-8000-000000000004', 'c0000000-0000-4000-8000-000000000001'),
    ('a0000000-0000-4000-8000-000000000004', 'c0000000-0000-4000-8000-000000000002'),
    ('a0000000-0000-4000-8000-000000000004', 'c0000000-0000-4000-8000-000000000003');

INSERT INTO compliance.modules (id, module_code, module_name, cross_sell_keywords) VALUES
    ('10000000-0000-4000-8000-000000000001', 'MODULE_1', 'Environmental permits', NULL),
    ('10000000-0000-4000-8000-000000000002', 'MODULE_2', 'Trade effluent',
     '{trade effluent, discharge consent, water company, sewer}'),
    ('10000000-0000-4000-8000-000000000003', 'MODULE_3', 'Generators', '{generator, MCPD, standby power, CHP}');

-- A scan that is to be read; one that was read, speaks of a sewer, and expires in 25 days; the registration of a generator.
INSERT INTO compliance.documents
    (id, company_id, site_id, module_id, title, document_type, permit_number, expiry_date, extraction_status,
     is_native_pdf, extracted_text, uploaded_by)
VALUES
    ('d0000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001',
     '50000000-0000-4000-8000-000000000001', '10000000-0000-4000-8000-000000000001', 'Environmental permit', 'permit',
     'EPR/AB1234', NULL, 'PENDING', false, NULL, 'a0000000-0000-4000-8000-000000000002'),
    ('d0000000-0000-4000-8000-000000000002', 'c0000000-0000-4000-8000-000000000002',
     '50000000-0000-4000-8000-000000000002', '10000000-0000-4000-8000-000000000001', 'Cannery permit', 'permit',
     'EPR/CD5678', '2026-01-30', 'COMPLETED', true, 'Washing water goes to the sewer of the water company.', NULL),
    ('d0000000-0000-4000-8000-000000000003', 'c0000000-0000-4000-8000-000000000001',
     '50000000-0000-4000-8000-000000000001', '10000000-0000-4000-8000-000000000003', 'Generator registration', 'MCPD',
     'MCP/7', NULL, 'COMPLETED', true, NULL, NULL);

INSERT INTO compliance.extraction_rules (module_code, pattern, confidence, extraction, version) VALUES
    ('MODULE_1', 'report emissions .* by 31 January', 0.95,
     '{"summary": "Report emissions", "category": "REPORTING", "condition_type": "REPORT", "frequency": "ANNUAL"}', '1');

-- Due at each month's end; passed three days ago; done in time; due in four days, with nothing that proves it.
INSERT INTO compliance.obligations
    (id, company_id, site_id, summary, condition_reference, category, frequency, base_date, deadline_date, status)
VALUES
    ('0b000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001',
     '50000000-0000-4000-8000-000000000001', 'Send the month''s waste return', '3.1', 'REPORTING', 'MONTHLY', '2025-10-31', NULL,
     'PENDING'),
    ('0b000000-0000-4000-8000-000000000002', 'c0000000-0000-4000-8000-000000000001',
     '50000000-0000-4000-8000-000000000001', 'Renew the insurance', '1.2', 'ADMINISTRATIVE', 'ONE_TIME', '2026-01-02',
     '2026-01-02', 'PENDING'),
    ('0b000000-0000-4000-8000-000000000003', 'c0000000-0000-4000-8000-000000000001',
     '50000000-0000-4000-8000-000000000001', 'Inspect the bund', '2.1', 'OPERATIONAL', 'QUARTERLY', '2025-09-20', '2025-12-20',
     'PENDING'),
    ('0b000000-0000-4000-8000-000000000004', 'c0000000-0000-4000-8000-000000000002',
     '50000000-0000-4000-8000-000000000002', 'Sample the outfall', '4.2', 'MONITORING', 'ONE_TIME', '2026-01-09',
     '2026-01-09', 'PENDING');

INSERT INTO compliance.deadlines
    (obligation_id, company_id, site_id, due_date, status, completed_at)
VALUES
    ('0b000000-0000-4000-8000-000000000002', 'c0000000-0000-4000-8000-000000000001',
     '50000000-0000-4000-8000-000000000001', '2026-01-02', 'PENDING', NULL),
    ('0b000000-0000-4000-8000-000000000003', 'c0000000-0000-4000-8000-000000000001',
     '50000000-0000-4000-8000-000000000001', '2025-12-20', 'COMPLETED', '2025-12-18T10:00:00Z'),
    ('0b000000-0000-4000-8000-000000000004', 'c0000000-0000-4000-8000-000000000002',
     '50000000-0000-4000-8000-000000000002', '2026-01-09', 'PENDING', NULL);

-- Its file is no longer the one whose hash is kept.
INSERT INTO compliance.evidence_items
    (id, company_id, site_id, file_name, file_type, mime_type, file_size_bytes, file_hash, storage_path, upload_date)
VALUES
    ('f0000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001',
     '50000000-0000-4000-8000-000000000001', 'inspection.txt', 'txt', 'text/plain', 39, repeat('0', 64),
     'evidence/c0000000-0000-4000-8000-000000000001/50000000-0000-4000-8000-000000000001/f0000000-0000-4000-8000-000000000001/inspection.txt',
     '2025-12-18T10:00:00Z');
INSERT INTO compliance.obligation_evidence_links (obligation_id, evidence_id) VALUES
    ('0b000000-0000-4000-8000-000000000003', 'f0000000-0000-4000-8000-000000000001');

-- A sample was due a week ago.
INSERT INTO compliance.parameters
    (id, company_id, site_id, document_id, parameter_type, sampling_frequency, created_at)
VALUES
    ('20000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000002',
     '50000000-0000-4000-8000-000000000002', 'd0000000-0000-4000-8000-000000000002', 'Ammonia', 'WEEKLY',
     '2025-11-03T09:00:00Z');
INSERT INTO compliance.lab_results (parameter_id, sample_date, value) VALUES
    ('20000000-0000-4000-8000-000000000001', '2025-12-22', 4.2);

-- 465 of 500 hours since 1 April; and the year before last, for the report.
INSERT INTO compliance.generators
    (id, company_id, site_id, document_id, generator_identifier, generator_type, capacity_mw, fuel_type,
     annual_run_hour_limit, anniversary_date)
VALUES
    ('30000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001',
     '50000000-0000-4000-8000-000000000001', 'd0000000-0000-4000-8000-000000000003', 'GEN-1', 'STANDBY', 1.2, 'DIESEL',
     500, '2024-04-01');
INSERT INTO compliance.run_hour_records (generator_id, recording_date, hours_recorded, fuel_consumption)
SELECT uuid '30000000-0000-4000-8000-000000000001', day, 15.5, 620
FROM generate_series(timestamp '2025-12-05', timestamp '2026-01-03', interval '1 day') AS day
UNION ALL
SELECT uuid '30000000-0000-4000-8000-000000000001', day, 12, 480
FROM generate_series(timestamp '2024-01-15', timestamp '2024-12-15', interval '1 month') AS day;
INSERT INTO compliance.stack_tests
    (generator_id, test_date, nox_rate, so2_rate, co_rate, particulates_rate, compliance_status)
VALUES
    ('30000000-0000-4000-8000-000000000001', '2024-05-14', 1.86, 0.04, 0.9, 0.11, 'COMPLIANT');

INSERT INTO compliance.excel_imports (id, company_id, site_id, user_id, file_path) VALUES
    ('e0000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001',
     '50000000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000001',
     'imports/c0000000-0000-4000-8000-000000000001/50000000-0000-4000-8000-000000000001/e0000000-0000-4000-8000-000000000001/original.csv');

-- A pack that failed in the evening: report_failed_jobs tells who asked for it.
INSERT INTO signalbox.dead_letter_jobs
    (original_job_id, job_type, payload, failure_reason, error_type, final_error_message, total_attempts, fingerprint,
     tenant, first_failed_at, last_failed_at, created_at, updated_at)
VALUES
    ('b0000000-0000-4000-8000-000000000009', 'audit_pack_generation',
     '{"pack_type": "INSURER_BROKER", "company_id": "c0000000-0000-4000-8000-000000000001",
       "requested_by": "a0000000-0000-4000-8000-000000000001"}',
     'exhausted', 'Transient', 'S3 does not answer', 3, 'story', 'c0000000-0000-4000-8000-000000000001',
     '2026-01-04T21:00:00Z', '2026-01-04T21:00:00Z', '2026-01-04T21:00:00Z', '2026-01-04T21:00:00Z');
