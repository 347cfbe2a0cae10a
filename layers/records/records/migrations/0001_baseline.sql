-- serves: 1
-- The tables of a product that reads medical records. What is in them stands nowhere else: not in payloads, results, errors or logs.

INSERT INTO signalbox.private_schemas (name, reason) VALUES ('records', 'it has health data');

CREATE TABLE records.user_profiles (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    full_name text NOT NULL,
    date_of_birth date,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE records.shell_files (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    patient_id uuid NOT NULL REFERENCES records.user_profiles,
    raw_file text NOT NULL,
    filename text NOT NULL,
    mime_type text NOT NULL,
    status text NOT NULL DEFAULT 'uploaded',
    page_count integer,
    ocr_spatial_data text,
    processing_session_id uuid,
    processed_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT file_status_known CHECK (status IN ('uploaded', 'processing', 'awaiting_review', 'completed', 'rejected'))
);
COMMENT ON COLUMN records.shell_files.raw_file IS 'The key of the file in the pack''s bucket.';
COMMENT ON COLUMN records.shell_files.ocr_spatial_data IS 'The key of its text with the lines'' places.';
COMMENT ON COLUMN records.shell_files.processing_session_id IS 'The job that read it last; passes of earlier ones are cancelled.';

CREATE TABLE records.pass1_entity_metrics (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    shell_file_id uuid NOT NULL REFERENCES records.shell_files,
    processing_session_id uuid NOT NULL UNIQUE,
    entities jsonb NOT NULL,
    entities_detected integer NOT NULL,
    model text NOT NULL,
    input_tokens integer NOT NULL,
    output_tokens integer NOT NULL,
    processing_ms integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE records.profile_classification_audit (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    shell_file_id uuid NOT NULL REFERENCES records.shell_files,
    patient_id uuid NOT NULL REFERENCES records.user_profiles,
    processing_session_id uuid NOT NULL UNIQUE,
    contamination_risk_score numeric(3, 2) NOT NULL,
    manual_review_required boolean NOT NULL,
    cross_profile_risk_detected boolean NOT NULL,
    reasons jsonb NOT NULL,
    review_decision text,
    reviewed_by text,
    reviewed_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT decision_known CHECK (review_decision IN ('approved', 'rejected')),
    CONSTRAINT review_is_whole CHECK (num_nonnulls(review_decision, reviewed_by, reviewed_at) IN (0, 3))
);
COMMENT ON TABLE records.profile_classification_audit IS
    'How likely a file is another patient''s, and what a person decided. A pass that waits for the decision looks each quarter of an hour.';

CREATE TABLE records.patient_conditions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    patient_id uuid NOT NULL REFERENCES records.user_profiles,
    shell_file_id uuid NOT NULL REFERENCES records.shell_files,
    processing_session_id uuid NOT NULL,
    entity_no integer NOT NULL,
    name text NOT NULL,
    code text,
    code_system text,
    status text,
    onset_date date,
    confidence real NOT NULL,
    superseded_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (processing_session_id, entity_no)
);
CREATE INDEX conditions_of_file ON records.patient_conditions (shell_file_id) WHERE superseded_at IS NULL;
CREATE INDEX conditions_of_patient ON records.patient_conditions (patient_id) WHERE superseded_at IS NULL;

CREATE TABLE records.patient_medications (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    patient_id uuid NOT NULL REFERENCES records.user_profiles,
    shell_file_id uuid NOT NULL REFERENCES records.shell_files,
    processing_session_id uuid NOT NULL,
    entity_no integer NOT NULL,
    name text NOT NULL,
    dose text,
    frequency text,
    started_on date,
    stopped_on date,
    confidence real NOT NULL,
    superseded_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (processing_session_id, entity_no)
);
CREATE INDEX medications_of_file ON records.patient_medications (shell_file_id) WHERE superseded_at IS NULL;
CREATE INDEX medications_of_patient ON records.patient_medications (patient_id) WHERE superseded_at IS NULL;

CREATE TABLE records.clinical_narratives (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    patient_id uuid NOT NULL REFERENCES records.user_profiles,
    shell_file_id uuid NOT NULL REFERENCES records.shell_files,
    processing_session_id uuid NOT NULL UNIQUE,
    narrative text NOT NULL,
    sources jsonb NOT NULL,
    model text NOT NULL,
    superseded_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX narratives_of_file ON records.clinical_narratives (shell_file_id) WHERE superseded_at IS NULL;
