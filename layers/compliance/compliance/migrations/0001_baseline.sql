-- serves: 1
-- The tables of an environmental-compliance product that the pack's jobs read and write. `updated_at` is set by
-- statements, never by a trigger: cross_sell_trigger_detection compares it with when it scanned a document.

-- ---- Companies, and who works for them

CREATE TABLE compliance.companies (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name text,
    timezone text DEFAULT 'UTC',
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE compliance.sites (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    name text,
    timezone text,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sites_of_company ON compliance.sites (company_id);

CREATE TABLE compliance.users (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    email text,
    phone text,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE compliance.user_roles (
    user_id uuid,
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    role text NOT NULL DEFAULT 'OWNER',
    CONSTRAINT role_known CHECK (role IN ('OWNER', 'ADMIN', 'STAFF', 'VIEWER', 'CONSULTANT'))
);
CREATE INDEX roles_of_company ON compliance.user_roles (company_id);
CREATE INDEX roles_of_user ON compliance.user_roles (user_id);

CREATE TABLE compliance.user_site_assignments (
    user_id uuid,
    site_id uuid REFERENCES compliance.sites ON DELETE CASCADE
);
CREATE INDEX assignments_of_site ON compliance.user_site_assignments (site_id);

CREATE TABLE compliance.modules (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    module_code text UNIQUE,
    module_name text,
    is_active boolean NOT NULL DEFAULT true,
    cross_sell_keywords text[],
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE compliance.module_activations (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    module_id uuid REFERENCES compliance.modules ON DELETE SET NULL,
    status text NOT NULL DEFAULT 'ACTIVE',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT activation_status_known CHECK (status IN ('ACTIVE', 'INACTIVE'))
);
CREATE INDEX activations_of_company ON compliance.module_activations (company_id);

-- ---- Documents, and what was read in them

CREATE TABLE compliance.documents (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    site_id uuid REFERENCES compliance.sites ON DELETE CASCADE,
    module_id uuid REFERENCES compliance.modules ON DELETE SET NULL,
    title text,
    document_type text,
    permit_number text,
    status text NOT NULL DEFAULT 'ACTIVE',
    expiry_date date,
    extraction_status text NOT NULL DEFAULT 'PENDING',
    error_message text,
    is_native_pdf boolean,
    ocr_confidence numeric,
    extracted_text text,
    extraction_completed_at timestamptz,
    page_count integer,
    file_size_bytes bigint,
    uploaded_by uuid,
    cross_sell_scanned_at timestamptz,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT document_status_known CHECK (status IN ('ACTIVE', 'EXPIRED', 'ARCHIVED')),
    CONSTRAINT extraction_status_known CHECK (
        extraction_status IN ('PENDING', 'PROCESSING', 'COMPLETED', 'FAILED', 'OCR_FAILED', 'EXTRACTION_FAILED',
                              'REVIEW_REQUIRED', 'ZERO_OBLIGATIONS')
    )
);
CREATE INDEX documents_of_company ON compliance.documents (company_id, id);
CREATE INDEX documents_by_permit ON compliance.documents (company_id, permit_number);

CREATE TABLE compliance.extraction_rules (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    module_code text,
    pattern text,
    confidence numeric,
    extraction jsonb DEFAULT '{}',
    version text,
    is_active boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE compliance.extraction_logs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    document_id uuid REFERENCES compliance.documents ON DELETE CASCADE,
    extraction_id uuid,
    extraction_timestamp timestamptz,
    model_identifier text,
    rule_library_version text,
    segments_processed integer,
    obligations_extracted integer,
    flagged_for_review integer,
    processing_time_ms integer,
    ocr_required boolean,
    ocr_confidence numeric,
    errors jsonb,
    warnings jsonb,
    metadata jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX extraction_logs_of_document ON compliance.extraction_logs (document_id, extraction_timestamp);

CREATE TABLE compliance.excel_imports (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    site_id uuid REFERENCES compliance.sites ON DELETE CASCADE,
    user_id uuid,
    file_path text,
    import_options jsonb DEFAULT '{}',
    status text NOT NULL DEFAULT 'PENDING',
    valid_rows jsonb,
    error_rows jsonb,
    warning_rows jsonb,
    row_count integer NOT NULL DEFAULT 0,
    valid_count integer NOT NULL DEFAULT 0,
    error_count integer NOT NULL DEFAULT 0,
    success_count integer NOT NULL DEFAULT 0,
    error_message text,
    completed_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT import_status_known CHECK (
        status IN ('PENDING', 'PROCESSING', 'PENDING_REVIEW', 'COMPLETED', 'FAILED')
    )
);

-- ---- Obligations, and when they are due

CREATE TABLE compliance.obligations (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    site_id uuid REFERENCES compliance.sites ON DELETE CASCADE,
    document_id uuid REFERENCES compliance.documents ON DELETE CASCADE,
    obligation_title text,
    obligation_description text,
    original_text text,
    summary text,
    category text,
    condition_type text,
    condition_reference text,
    frequency text,
    base_date date,
    deadline_date date,
    status text NOT NULL DEFAULT 'PENDING',
    review_status text NOT NULL DEFAULT 'NOT_REQUIRED',
    confidence_score numeric,
    is_subjective boolean NOT NULL DEFAULT false,
    subjective_phrases text[],
    assigned_to uuid,
    import_source text,
    excel_import_id uuid REFERENCES compliance.excel_imports ON DELETE SET NULL,
    extraction_id uuid,
    chunk_sha256 text,
    created_by uuid,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT obligation_frequency_known
        CHECK (frequency IN ('DAILY', 'WEEKLY', 'MONTHLY', 'QUARTERLY', 'ANNUAL', 'ONE_TIME')),
    CONSTRAINT obligation_status_known CHECK (
        status IN ('PENDING', 'DUE_SOON', 'IN_PROGRESS', 'OVERDUE', 'COMPLETED', 'NOT_APPLICABLE')
    ),
    CONSTRAINT review_status_known
        CHECK (review_status IN ('NOT_REQUIRED', 'PENDING', 'CONFIRMED', 'EDITED', 'REJECTED'))
);
CREATE INDEX obligations_of_company ON compliance.obligations (company_id, id) WHERE deleted_at IS NULL;
CREATE INDEX obligations_due ON compliance.obligations (company_id, deadline_date)
    WHERE deleted_at IS NULL AND status IN ('PENDING', 'DUE_SOON', 'IN_PROGRESS');
CREATE INDEX obligations_of_document ON compliance.obligations (document_id);

CREATE TABLE compliance.review_queue_items (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    document_id uuid REFERENCES compliance.documents ON DELETE CASCADE,
    obligation_id uuid REFERENCES compliance.obligations ON DELETE CASCADE,
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    site_id uuid REFERENCES compliance.sites ON DELETE CASCADE,
    extraction_id uuid,
    review_type text NOT NULL DEFAULT 'LOW_CONFIDENCE',
    is_blocking boolean NOT NULL DEFAULT false,
    priority integer,
    original_data jsonb,
    review_status text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT review_type_known CHECK (
        review_type IN ('LOW_CONFIDENCE', 'OCR_LOW_CONFIDENCE', 'OCR_FAILED', 'EXTRACTION_FAILED', 'VALIDATION_ERROR',
                        'ZERO_OBLIGATIONS')
    )
);
CREATE INDEX review_items_of_document ON compliance.review_queue_items (document_id);
CREATE INDEX review_items_of_obligation ON compliance.review_queue_items (obligation_id);

CREATE TABLE compliance.schedules (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    obligation_id uuid UNIQUE REFERENCES compliance.obligations ON DELETE CASCADE,
    frequency text,
    base_date date,
    next_due_date date,
    status text NOT NULL DEFAULT 'ACTIVE',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT schedule_status_known CHECK (status IN ('ACTIVE', 'PAUSED'))
);

CREATE TABLE compliance.deadlines (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    obligation_id uuid REFERENCES compliance.obligations ON DELETE CASCADE,
    schedule_id uuid REFERENCES compliance.schedules ON DELETE CASCADE,
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    site_id uuid REFERENCES compliance.sites ON DELETE CASCADE,
    due_date date,
    status text NOT NULL DEFAULT 'PENDING',
    compliance_period_start date,
    compliance_period_end date,
    completed_at timestamptz,
    completed_by uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT deadlines_one_a_day UNIQUE (obligation_id, due_date),
    CONSTRAINT deadline_status_known CHECK (status IN ('PENDING', 'DUE_SOON', 'OVERDUE', 'COMPLETED')),
    CONSTRAINT completed_at_iff_completed CHECK ((status = 'COMPLETED') = (completed_at IS NOT NULL))
);
CREATE INDEX deadlines_open ON compliance.deadlines (company_id, due_date) WHERE status IN ('PENDING', 'DUE_SOON');
CREATE INDEX deadlines_of_company ON compliance.deadlines (company_id, due_date);
CREATE INDEX deadlines_of_schedule ON compliance.deadlines (schedule_id);

-- Deadlines whose alert had nobody to go to when they became overdue: deadline_alert looks at them again.
CREATE TABLE compliance.untold_deadlines (
    deadline_id uuid PRIMARY KEY REFERENCES compliance.deadlines ON DELETE CASCADE,
    company_id uuid NOT NULL REFERENCES compliance.companies ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX untold_deadlines_of_company ON compliance.untold_deadlines (company_id);

-- ---- Evidence

CREATE TABLE compliance.evidence_items (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    site_id uuid REFERENCES compliance.sites ON DELETE CASCADE,
    file_name text,
    file_type text,
    mime_type text,
    file_size_bytes bigint,
    file_hash text,
    storage_path text,
    upload_date timestamptz,
    uploaded_by uuid,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE compliance.obligation_evidence_links (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    obligation_id uuid REFERENCES compliance.obligations ON DELETE CASCADE,
    evidence_id uuid REFERENCES compliance.evidence_items ON DELETE CASCADE,
    linked_at timestamptz DEFAULT now(),
    linked_by uuid,
    unlinked_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX evidence_links_of_obligation ON compliance.obligation_evidence_links (obligation_id);
CREATE INDEX evidence_links_of_evidence ON compliance.obligation_evidence_links (evidence_id);

-- ---- What people are told, and what is kept of who did what. No foreign keys: they outlive what they speak of.

CREATE TABLE compliance.notifications (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id uuid,
    company_id uuid,
    site_id uuid,
    alert_type text,
    severity text,
    channel text NOT NULL DEFAULT 'EMAIL',
    title text,
    message text,
    entity_type text,
    entity_id uuid,
    action_url text,
    metadata jsonb,
    -- In the order of bytes, so that a range of keys is all that begin alike.
    dedupe_key text COLLATE "C" UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT channel_known CHECK (channel IN ('EMAIL', 'SMS', 'IN_APP'))
);
CREATE INDEX notifications_of_entity ON compliance.notifications (entity_id, alert_type);

CREATE TABLE compliance.audit_logs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    company_id uuid,
    user_id uuid,
    action_type text,
    entity_type text,
    entity_id uuid,
    previous_values jsonb,
    new_values jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_logs_of_company ON compliance.audit_logs (company_id, created_at);
CREATE INDEX audit_logs_of_entity ON compliance.audit_logs (entity_id);

-- ---- Samples, generators, and their yearly reports

CREATE TABLE compliance.parameters (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    site_id uuid REFERENCES compliance.sites ON DELETE CASCADE,
    document_id uuid REFERENCES compliance.documents ON DELETE CASCADE,
    parameter_type text,
    sampling_frequency text,
    sampling_weekday integer DEFAULT 0,
    next_sample_date date,
    is_active boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX parameters_of_company ON compliance.parameters (company_id, id);

CREATE TABLE compliance.lab_results (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    parameter_id uuid REFERENCES compliance.parameters ON DELETE CASCADE,
    sample_date date,
    value numeric,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX lab_results_of_parameter ON compliance.lab_results (parameter_id, sample_date);

CREATE TABLE compliance.generators (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    site_id uuid REFERENCES compliance.sites ON DELETE CASCADE,
    document_id uuid REFERENCES compliance.documents ON DELETE CASCADE,
    generator_identifier text,
    generator_type text,
    capacity_mw numeric,
    fuel_type text,
    annual_run_hour_limit numeric,
    monthly_run_hour_limit numeric,
    anniversary_date date,
    current_year_hours numeric,
    current_month_hours numeric,
    is_active boolean NOT NULL DEFAULT true,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX generators_of_company ON compliance.generators (company_id, id);
CREATE INDEX generators_of_document ON compliance.generators (document_id);

CREATE TABLE compliance.run_hour_records (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    generator_id uuid REFERENCES compliance.generators ON DELETE CASCADE,
    recording_date date,
    hours_recorded numeric,
    fuel_consumption numeric,
    is_draft boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX run_hours_of_generator ON compliance.run_hour_records (generator_id, recording_date);

CREATE TABLE compliance.stack_tests (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    generator_id uuid REFERENCES compliance.generators ON DELETE CASCADE,
    test_date date,
    nox_rate numeric,
    so2_rate numeric,
    co_rate numeric,
    particulates_rate numeric,
    compliance_status text,
    is_draft boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX stack_tests_of_generator ON compliance.stack_tests (generator_id, test_date);

CREATE TABLE compliance.incidents (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    generator_id uuid REFERENCES compliance.generators ON DELETE CASCADE,
    incident_date date,
    description text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX incidents_of_generator ON compliance.incidents (generator_id, incident_date);

CREATE TABLE compliance.aer_documents (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    document_id uuid REFERENCES compliance.documents ON DELETE CASCADE,
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    reporting_period_start date,
    reporting_period_end date,
    submission_deadline date,
    status text,
    generator_data jsonb,
    fuel_consumption_data jsonb,
    emissions_data jsonb,
    incidents_data jsonb,
    total_run_hours numeric,
    is_validated boolean NOT NULL DEFAULT false,
    validation_errors jsonb,
    generated_file_path text,
    generated_csv_path text,
    generated_at timestamptz,
    created_by uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- ---- Suggestions, packs of evidence, consultants

CREATE TABLE compliance.cross_sell_triggers (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    target_module_id uuid REFERENCES compliance.modules ON DELETE CASCADE,
    trigger_type text,
    trigger_source text,
    detected_keywords text[],
    confidence numeric,
    status text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT cross_sell_once UNIQUE (company_id, target_module_id, trigger_source)
);

CREATE TABLE compliance.audit_packs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    document_id uuid REFERENCES compliance.documents ON DELETE CASCADE,
    company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    site_id uuid REFERENCES compliance.sites ON DELETE CASCADE,
    pack_type text,
    recipient_type text,
    recipient_name text,
    purpose text,
    date_range_start date,
    date_range_end date,
    filters_applied jsonb,
    storage_path text,
    output_format text NOT NULL DEFAULT 'PDF',
    file_size_bytes bigint,
    total_obligations integer NOT NULL DEFAULT 0,
    complete_count integer NOT NULL DEFAULT 0,
    pending_count integer NOT NULL DEFAULT 0,
    overdue_count integer NOT NULL DEFAULT 0,
    evidence_count integer NOT NULL DEFAULT 0,
    integrity_errors_count integer NOT NULL DEFAULT 0,
    integrity_report jsonb DEFAULT '{}',
    generation_time_ms integer,
    generated_by uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT output_format_known CHECK (output_format IN ('PDF', 'ZIP'))
);

CREATE TABLE compliance.pack_distributions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    pack_id uuid REFERENCES compliance.audit_packs ON DELETE CASCADE,
    job_id uuid,
    distribution_method text,
    delivery text NOT NULL DEFAULT 'ATTACHMENT',
    recipient_email text,
    recipient_name text,
    message text,
    token_hash text,
    shared_link_expires_at timestamptz,
    status text NOT NULL DEFAULT 'PENDING',
    sent_at timestamptz,
    revoked_at timestamptz,
    view_count integer NOT NULL DEFAULT 0,
    last_viewed_at timestamptz,
    requested_by uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT delivery_known CHECK (delivery IN ('ATTACHMENT', 'LINK')),
    CONSTRAINT distribution_status_known CHECK (status IN ('PENDING', 'SENT', 'FAILED'))
);
CREATE UNIQUE INDEX distribution_once ON compliance.pack_distributions (job_id, lower(recipient_email));
CREATE INDEX distributions_by_token ON compliance.pack_distributions (token_hash);

CREATE TABLE compliance.consultant_client_assignments (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    consultant_id uuid,
    client_company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    status text NOT NULL DEFAULT 'ACTIVE',
    status_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT client_once UNIQUE (consultant_id, client_company_id),
    CONSTRAINT assignment_status_known CHECK (status IN ('ACTIVE', 'INACTIVE'))
);

CREATE TABLE compliance.consultant_dashboards (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    consultant_id uuid,
    client_company_id uuid REFERENCES compliance.companies ON DELETE CASCADE,
    compliance_score numeric,
    due_count integer NOT NULL DEFAULT 0,
    on_time_count integer NOT NULL DEFAULT 0,
    overdue_count integer NOT NULL DEFAULT 0,
    data jsonb DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT dashboard_once UNIQUE (consultant_id, client_company_id)
);

-- ---- The grid of an obligation's deadlines: base_date and n periods, each counted from base_date, cut at a month's end.
-- In plpgsql, since SQL functions would be written out in each place, and the statement planned for longer than it runs.

CREATE FUNCTION compliance.grid_date(base date, frequency text, n integer) RETURNS date LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE frequency
        WHEN 'DAILY' THEN base + n
        WHEN 'WEEKLY' THEN base + 7 * n
        WHEN 'MONTHLY' THEN (base + make_interval(months => n))::date
        WHEN 'QUARTERLY' THEN (base + make_interval(months => 3 * n))::date
        WHEN 'ANNUAL' THEN (base + make_interval(months => 12 * n))::date
        WHEN 'ONE_TIME' THEN base
    END;
END
$$;

-- The n of the last grid date that is not after the month, or for days and weeks the day, that the given day is in.
CREATE FUNCTION compliance.grid_number(base date, frequency text, day date) RETURNS integer
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE frequency
        WHEN 'DAILY' THEN day - base
        WHEN 'WEEKLY' THEN (day - base) / 7
        WHEN 'ONE_TIME' THEN 0
        ELSE (extract(year FROM day)::int * 12 + extract(month FROM day)::int
              - extract(year FROM base)::int * 12 - extract(month FROM base)::int)
             / CASE frequency WHEN 'MONTHLY' THEN 1 WHEN 'QUARTERLY' THEN 3 ELSE 12 END
    END;
END
$$;

-- The n of the first grid date after a day.
CREATE FUNCTION compliance.grid_number_after(base date, frequency text, day date) RETURNS integer
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    n integer := compliance.grid_number(base, frequency, day);
BEGIN
    RETURN n + (compliance.grid_date(base, frequency, n) <= day)::int;
END
$$;

-- Whether a day is on the grid, which begins with the n of 0 or 1.
CREATE FUNCTION compliance.is_on_grid(base date, frequency text, day date, begins integer) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    n integer := compliance.grid_number(base, frequency, day);
BEGIN
    RETURN n >= begins AND compliance.grid_date(base, frequency, n) = day;
END
$$;

-- Calculate the deadlines, schedules and statuses of some obligations, in one statement. It is a function because its
-- plan is kept for the session: to plan it for each company takes half as long as the work.
CREATE FUNCTION compliance.calculate_deadlines(
    ids uuid[], company uuid, slot timestamptz, force boolean,
    OUT recurring bigint, OUT created bigint, OUT due_soon bigint, OUT overdue bigint
) LANGUAGE plpgsql
-- A plan that is made while the tables are empty must suit full ones.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    -- `IS NOT DISTINCT FROM`: else the planner reads all deadlines of the company for each of its obligations.
    WITH dated AS (
        SELECT o.*, s.id AS schedule_id, s.next_due_date, s.status IS NOT DISTINCT FROM 'PAUSED' AS is_paused,
               calculate_deadlines.force OR s.id IS NOT NULL AND (s.frequency, s.base_date) IS DISTINCT FROM (o.frequency, o.base_date)
                   AS is_moved,
               o.frequency IS NOT NULL AND o.base_date IS NOT NULL AS recurs, t.zone,
               (calculate_deadlines.slot AT TIME ZONE t.zone)::date AS today
        FROM compliance.obligations o
        JOIN compliance.companies c ON c.id = o.company_id
        LEFT JOIN compliance.sites p ON p.id = o.site_id AND p.company_id = o.company_id
        LEFT JOIN compliance.schedules s ON s.obligation_id = o.id
        CROSS JOIN LATERAL (SELECT coalesce(p.timezone, c.timezone, 'UTC') AS zone) t
        WHERE o.id = ANY (calculate_deadlines.ids) AND o.company_id = calculate_deadlines.company
    ), done AS (
        -- What there is, what has been completed up to that day, and the n of the grid's beginning: 0 on base_date itself.
        SELECT o.*, d.last_completed, coalesce(d.dates, '{}') AS dates, coalesce(d.open_dates, '{}') AS open_dates,
               CASE WHEN d.has_base OR o.frequency = 'ONE_TIME' THEN 0 ELSE 1 END AS begins
        FROM dated o CROSS JOIN LATERAL (
            SELECT max(d.due_date) FILTER (
                       WHERE d.status = 'COMPLETED' AND (d.completed_at AT TIME ZONE o.zone)::date <= o.today
                   ) AS last_completed,
                   bool_or(d.due_date = o.base_date) AS has_base, array_agg(d.due_date) AS dates,
                   array_agg(d.due_date) FILTER (WHERE d.status IN ('PENDING', 'DUE_SOON')) AS open_dates
            FROM compliance.deadlines d WHERE d.obligation_id = o.id AND d.company_id IS NOT DISTINCT FROM o.company_id
        ) d
    ), placed AS (
        -- The n of the first grid date that is due, null where nothing is made; and of the last one within 90 days.
        SELECT o.*, f.is_finished, f.first,
               greatest(f.first, CASE WHEN o.frequency = 'ONE_TIME' THEN 0
                    ELSE compliance.grid_number_after(o.base_date, o.frequency, o.today + 90) - 1 END) AS last
        FROM done o CROSS JOIN LATERAL (
            SELECT o.frequency = 'ONE_TIME' AND coalesce(o.last_completed >= o.base_date, false) AS is_finished
        ) e CROSS JOIN LATERAL (
            SELECT e.is_finished,
                   CASE WHEN o.recurs AND NOT o.is_paused AND NOT e.is_finished THEN greatest(
                       o.begins, coalesce(compliance.grid_number_after(o.base_date, o.frequency, o.last_completed), 0)
                   ) END AS first
        ) f
    ), planned AS (
        SELECT o.*,
               CASE WHEN o.first IS NULL THEN o.deadline_date
                    ELSE compliance.grid_date(o.base_date, o.frequency, o.first) END AS new_deadline,
               array(SELECT compliance.grid_date(o.base_date, o.frequency, n) FROM generate_series(o.first, o.last) n
                     WHERE compliance.grid_date(o.base_date, o.frequency, n) <> ALL (o.dates)) AS missing,
               CASE WHEN o.is_moved AND o.recurs AND NOT o.is_paused THEN array(
                   SELECT d.due_date FROM compliance.deadlines d
                   WHERE d.obligation_id = o.id AND d.company_id IS NOT DISTINCT FROM o.company_id
                     AND d.status = 'PENDING' AND d.due_date > o.today
                     AND NOT compliance.is_on_grid(o.base_date, o.frequency, d.due_date, o.begins)
               ) ELSE '{}' END AS off_grid
        FROM placed o
    ), judged AS (
        SELECT o.*,
               CASE WHEN o.is_finished THEN 'COMPLETED'
                    WHEN o.new_deadline < o.today AND m.status IN ('PENDING', 'DUE_SOON', 'IN_PROGRESS') THEN 'OVERDUE'
                    WHEN o.new_deadline BETWEEN o.today AND o.today + 7 AND m.status = 'PENDING' THEN 'DUE_SOON'
                    ELSE m.status END AS new_status,
               (SELECT min(day) FROM unnest(o.open_dates || o.missing) day WHERE day <> ALL (o.off_grid)) AS next_due
        FROM planned o
        -- Another deadline begins again.
        CROSS JOIN LATERAL (
            SELECT CASE WHEN o.deadline_date <> o.new_deadline THEN 'PENDING' ELSE o.status END AS status
        ) m
    ), scheduled AS (
        INSERT INTO compliance.schedules (obligation_id, frequency, base_date, next_due_date)
        SELECT id, frequency, base_date, next_due FROM judged
        WHERE recurs AND NOT is_paused
          AND (schedule_id IS NULL OR is_moved OR next_due_date IS DISTINCT FROM next_due)
        ON CONFLICT (obligation_id) DO UPDATE
        SET frequency = excluded.frequency, base_date = excluded.base_date, next_due_date = excluded.next_due_date,
            updated_at = now()
        RETURNING id, obligation_id
    ), removed AS (
        DELETE FROM compliance.deadlines d USING judged o
        WHERE o.off_grid <> '{}' AND d.obligation_id = o.id AND d.company_id = o.company_id
          AND d.due_date = ANY (o.off_grid)
    ), made AS (
        INSERT INTO compliance.deadlines
            (obligation_id, schedule_id, company_id, site_id, due_date, compliance_period_start, compliance_period_end)
        SELECT o.id, coalesce(o.schedule_id, s.id), o.company_id, o.site_id, g.due,
               CASE WHEN n > 0 THEN compliance.grid_date(o.base_date, o.frequency, n - 1) END, g.due - 1
        FROM judged o
        LEFT JOIN scheduled s ON s.obligation_id = o.id
        CROSS JOIN LATERAL unnest(o.missing) g (due)
        CROSS JOIN LATERAL compliance.grid_number(o.base_date, o.frequency, g.due) n
        ON CONFLICT (obligation_id, due_date) DO NOTHING
        RETURNING 1
    ), changed AS (
        UPDATE compliance.obligations t
        SET deadline_date = o.new_deadline, status = o.new_status, updated_at = now()
        FROM judged o
        WHERE t.id = o.id AND t.company_id = o.company_id
          AND (o.deadline_date, o.status) IS DISTINCT FROM (o.new_deadline, o.new_status)
        RETURNING o.status AS old_status, t.status
    )
    SELECT (SELECT count(*) FROM judged WHERE recurs), (SELECT count(*) FROM made),
           count(*) FILTER (WHERE status = 'DUE_SOON' AND old_status <> 'DUE_SOON'),
           count(*) FILTER (WHERE status = 'OVERDUE' AND old_status <> 'OVERDUE')
    FROM changed
    INTO recurring, created, due_soon, overdue;
END $$;

-- ---- What is written where a job is dead-lettered: see docs/dead-letters.md

-- A job's payload is checked when it starts, so an id may not be one.
CREATE FUNCTION compliance.uuid_of(text) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN $1 ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN $1::uuid END
$$;

-- Not where the phase had ended before its worker was lost, nor for a payload that is not the import's.
CREATE FUNCTION compliance.import_failed(job uuid, payload jsonb, reason text, error jsonb) RETURNS void
LANGUAGE sql AS $$
    UPDATE compliance.excel_imports
    SET status = 'FAILED', error_message = coalesce(error ->> 'message', reason), updated_at = now()
    WHERE id = compliance.uuid_of(payload ->> 'import_id') AND error ->> 'type' IS DISTINCT FROM 'PayloadDiffers'
        AND status = CASE payload ->> 'phase' WHEN 'VALIDATE' THEN 'PENDING' WHEN 'CREATE' THEN 'PENDING_REVIEW' END
$$;

CREATE FUNCTION compliance.delivery_failed(job uuid, payload jsonb, reason text, error jsonb) RETURNS void
LANGUAGE sql AS $$
    UPDATE compliance.pack_distributions SET status = 'FAILED', updated_at = now()
    WHERE id = compliance.uuid_of(payload ->> 'distribution_id') AND status = 'PENDING'
$$;

-- The cursor says what the job was doing. A document stays as it is where the job had ended its extraction, where
-- another job has completed it, or where this one never began to read it again.
CREATE FUNCTION compliance.document_failed(job uuid, payload jsonb, reason text, error jsonb) RETURNS void
LANGUAGE sql AS $$
    WITH failed AS (
        UPDATE compliance.documents AS d
        SET extraction_status = CASE
                WHEN document_failed.error ->> 'type' = 'FileMissing' THEN 'FAILED'
                WHEN j.cursor ->> 'step' = 'ocr' THEN 'OCR_FAILED'
                ELSE 'EXTRACTION_FAILED'
            END,
            error_message = coalesce(document_failed.error ->> 'message', document_failed.reason), updated_at = now()
        FROM signalbox.jobs AS j
        WHERE j.id = document_failed.job AND d.id = compliance.uuid_of(document_failed.payload ->> 'document_id')
            AND d.deleted_at IS NULL AND d.extraction_status IN ('PENDING', 'PROCESSING')
            AND NOT EXISTS (SELECT FROM compliance.extraction_logs AS l WHERE l.extraction_id = document_failed.job)
        RETURNING d.*
    )
    INSERT INTO compliance.review_queue_items
        (document_id, company_id, site_id, extraction_id, review_type, is_blocking, priority, original_data,
         review_status)
    SELECT f.id, f.company_id, f.site_id, document_failed.job, f.extraction_status, false, 1,
        jsonb_build_object('error_type', document_failed.error ->> 'type', 'error_message', f.error_message), 'PENDING'
    FROM failed AS f
    WHERE f.extraction_status <> 'FAILED' AND NOT EXISTS (
        SELECT FROM compliance.review_queue_items AS i
        WHERE i.document_id = f.id AND i.extraction_id = document_failed.job AND i.review_type = f.extraction_status)
$$;
