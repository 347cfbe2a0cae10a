-- find: the import, locked against another job of it
SELECT e.id::text, e.company_id::text, e.site_id::text, e.user_id::text, e.file_path, coalesce(e.import_options, '{}'), e.status,
       c.deleted_at IS NOT NULL
FROM compliance.excel_imports e
JOIN compliance.companies c ON c.id = e.company_id
JOIN compliance.sites s ON s.id = e.site_id AND s.company_id = e.company_id
WHERE e.id = %(import_id)s
FOR NO KEY UPDATE OF e;

-- counts: what the import has come to so far
SELECT status, row_count, valid_count, error_count, success_count
FROM compliance.excel_imports WHERE id = %(import_id)s AND company_id = %(company_id)s;

-- find_sites: which of the texts are ids of sites, and whether the company's; a deleted one of its own is none
SELECT s.id::text, s.company_id = %(company_id)s
FROM unnest(%(texts)s::text[]) AS named (text)
JOIN compliance.sites s ON s.id = compliance.uuid_of(named.text)
WHERE s.company_id IS DISTINCT FROM %(company_id)s OR s.deleted_at IS NULL;

-- find_duplicates: which of the obligations are there
SELECT DISTINCT n.permit_number, n.obligation_title, n.site_id
FROM jsonb_to_recordset(%(rows)s) AS n (permit_number text, obligation_title text, site_id text)
JOIN compliance.documents d
    ON d.company_id = %(company_id)s AND d.permit_number = n.permit_number AND d.deleted_at IS NULL
JOIN compliance.obligations o
    ON o.document_id = d.id AND o.company_id = %(company_id)s AND o.obligation_title = n.obligation_title
    AND o.site_id = compliance.uuid_of(n.site_id) AND o.deleted_at IS NULL;

-- store_preview: what a person is asked to confirm
UPDATE compliance.excel_imports
SET status = 'PENDING_REVIEW', valid_rows = %(valid_rows)s, error_rows = %(error_rows)s,
    warning_rows = %(warning_rows)s, row_count = %(row_count)s, valid_count = jsonb_array_length(%(valid_rows)s),
    error_count = jsonb_array_length(%(error_rows)s), updated_at = now()
WHERE id = %(import_id)s AND company_id = %(company_id)s;

-- find_preview: what a person has confirmed
SELECT coalesce(valid_rows, '[]'), coalesce(error_rows, '[]')
FROM compliance.excel_imports WHERE id = %(import_id)s AND company_id = %(company_id)s;

-- add_sites: sites that rows name and nobody has
INSERT INTO compliance.sites (id, company_id, name)
SELECT n.id, %(company_id)s, n.name FROM jsonb_to_recordset(%(sites)s) AS n (id uuid, name text)
ON CONFLICT (id) DO NOTHING;

-- find_permits: the documents of permits, the oldest of each number and site
SELECT DISTINCT ON (d.permit_number, d.site_id) d.permit_number, d.site_id::text, d.id::text
FROM compliance.documents d
JOIN jsonb_to_recordset(%(permits)s) AS n (permit_number text, site_id uuid)
    ON n.permit_number = d.permit_number AND n.site_id = d.site_id
WHERE d.company_id = %(company_id)s AND d.deleted_at IS NULL
ORDER BY d.permit_number, d.site_id, d.created_at, d.id;

-- add_permits: documents of permits that rows name and nobody has
INSERT INTO compliance.documents (id, company_id, site_id, title, permit_number, status)
SELECT n.id, %(company_id)s, n.site_id, n.permit_number, n.permit_number, 'ACTIVE'
FROM jsonb_to_recordset(%(permits)s) AS n (id uuid, permit_number text, site_id uuid)
ON CONFLICT (id) DO NOTHING;

-- add_obligations: the obligations, each with its deadline
WITH given AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(rows)s) AS n (
        id uuid, document_id uuid, site_id uuid, obligation_title text, obligation_description text, frequency text,
        deadline_date date)
), made AS (
    INSERT INTO compliance.obligations
        (id, company_id, site_id, document_id, obligation_title, obligation_description, frequency, base_date,
         deadline_date, import_source, excel_import_id, created_by)
    SELECT id, %(company_id)s, site_id, document_id, obligation_title, obligation_description, frequency,
           deadline_date, deadline_date, 'excel_import', %(import_id)s, %(user_id)s
    FROM given
    RETURNING id, site_id, deadline_date
)
INSERT INTO compliance.deadlines (obligation_id, company_id, site_id, due_date, status)
SELECT id, %(company_id)s, site_id, deadline_date, 'PENDING' FROM made;

-- complete: what the import has made
UPDATE compliance.excel_imports
SET status = 'COMPLETED', success_count = %(success_count)s, valid_rows = %(valid_rows)s,
    valid_count = jsonb_array_length(%(valid_rows)s), error_rows = %(error_rows)s,
    error_count = jsonb_array_length(%(error_rows)s), completed_at = now(), updated_at = now()
WHERE id = %(import_id)s AND company_id = %(company_id)s;
