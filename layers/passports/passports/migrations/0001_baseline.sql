-- serves: 1
-- The tables of a product that issues digital battery passports. There are no foreign keys: the jobs check that a row and
-- what it refers to are there and of one tenant, and say so by a code. Triggers keep what has been issued as it is.

CREATE TABLE passports.documents (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    kind text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT kind_known CHECK (kind IN ('BOM', 'PCF', 'DUE_DILIGENCE', 'OTHER'))
);

CREATE TABLE passports.document_versions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    document_id uuid NOT NULL,
    version integer NOT NULL,
    status text NOT NULL DEFAULT 'UPLOADED',
    mime_type text NOT NULL,
    content bytea NOT NULL,
    source_url text,
    rejection jsonb,
    ingest_job_id uuid UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (document_id, version),
    CONSTRAINT document_status_known CHECK (status IN ('UPLOADED', 'VALIDATED', 'REJECTED'))
);

CREATE TABLE passports.facts (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    fact_type text NOT NULL,
    fact_key text NOT NULL,
    schema_version integer NOT NULL,
    source_doc_version_id uuid NOT NULL,
    payload jsonb NOT NULL,
    payload_canonical bytea NOT NULL,
    payload_hash bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (source_doc_version_id, fact_type, fact_key),
    CONSTRAINT fact_hash_is_sha256 CHECK (octet_length(payload_hash) = 32)
);

CREATE TABLE passports.data_snapshots (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    status text NOT NULL DEFAULT 'BUILDING',
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT snapshot_status_known CHECK (status IN ('BUILDING', 'READY', 'SEALED'))
);

CREATE TABLE passports.data_snapshot_items (
    snapshot_id uuid NOT NULL,
    fact_id uuid NOT NULL,
    tenant_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (snapshot_id, fact_id)
);

CREATE TABLE passports.rule_packages (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE passports.rule_package_versions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    rule_package_id uuid NOT NULL,
    version integer NOT NULL,
    status text NOT NULL DEFAULT 'DRAFT',
    rules_source text NOT NULL,
    tests_source text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (rule_package_id, version),
    CONSTRAINT rules_status_known CHECK (status IN ('DRAFT', 'VALIDATED', 'PUBLISHED'))
);

CREATE TABLE passports.rule_tests_runs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    rule_package_version_id uuid NOT NULL,
    seed bigint NOT NULL,
    total_cases integer NOT NULL,
    passed_count integer NOT NULL,
    failed_count integer NOT NULL,
    status text NOT NULL DEFAULT 'PASSED',
    first_failure jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT tests_status_known CHECK (status IN ('PASSED', 'FAILED'))
);

CREATE TABLE passports.battery_products (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    sku text NOT NULL,
    attributes jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE passports.passports (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    battery_product_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE passports.passport_versions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    passport_id uuid NOT NULL,
    version integer NOT NULL,
    snapshot_id uuid NOT NULL,
    rule_package_version_id uuid NOT NULL,
    status text NOT NULL DEFAULT 'COMPILING',
    payload_canonical bytea NOT NULL,
    payload_hash bytea NOT NULL,
    proof_canonical bytea NOT NULL,
    proof_root_hash bytea NOT NULL,
    receipt_canonical bytea NOT NULL,
    receipt_hash bytea NOT NULL,
    compiler_build_id text NOT NULL,
    issued_at timestamptz NOT NULL,
    signature bytea,
    signing_key_id text,
    signing_key_public bytea,
    qr_payload text,
    qr_png bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (passport_id, version),
    CONSTRAINT passport_status_known CHECK (status IN ('COMPILING', 'SIGNED', 'ACTIVE', 'REVOKED')),
    CONSTRAINT passport_hashes_are_sha256 CHECK (
        octet_length(payload_hash) = 32 AND octet_length(proof_root_hash) = 32 AND octet_length(receipt_hash) = 32)
);

CREATE TABLE passports.passport_exports (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    passport_version_id uuid NOT NULL,
    format text NOT NULL,
    key text NOT NULL,
    bytes integer NOT NULL,
    sha256 bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (passport_version_id, format, key),
    CONSTRAINT format_known CHECK (format IN ('PDF', 'JSON_LD', 'XML')),
    CONSTRAINT export_hash_is_sha256 CHECK (octet_length(sha256) = 32)
);

-- ---- What has happened, in a chain of hashes for each thing that it happened to

CREATE TABLE passports.events (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    aggregate_type text NOT NULL,
    aggregate_id uuid NOT NULL,
    seq bigint NOT NULL,
    event_type text NOT NULL,
    actor_id uuid,
    occurred_at timestamptz NOT NULL,
    payload jsonb NOT NULL,
    prev_hash bytea,
    hash bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, aggregate_type, aggregate_id, seq),
    CONSTRAINT event_hashes_are_sha256 CHECK (octet_length(prev_hash) = 32 AND octet_length(hash) = 32)
);

CREATE TABLE passports.event_heads (
    tenant_id uuid NOT NULL,
    aggregate_type text NOT NULL,
    aggregate_id uuid NOT NULL,
    seq bigint NOT NULL,
    hash bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, aggregate_type, aggregate_id),
    CONSTRAINT head_hash_is_sha256 CHECK (octet_length(hash) = 32)
);

CREATE TABLE passports.webhook_endpoints (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    url text NOT NULL,
    secret text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE passports.webhook_deliveries (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    event_id uuid NOT NULL,
    status text NOT NULL DEFAULT 'PENDING',
    attempts integer NOT NULL DEFAULT 0,
    http_status integer,
    response_headers jsonb,
    response_body bytea,
    last_error text,
    delivered_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT delivery_status_known CHECK (status IN ('PENDING', 'DELIVERED', 'FAILED'))
);

-- ---- What stays as it is

CREATE FUNCTION passports.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of passports.% is refused: its rows stay as they are', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END
$$;

CREATE TRIGGER facts_stay BEFORE UPDATE OR DELETE ON passports.facts
    FOR EACH ROW EXECUTE FUNCTION passports.refuse_change();
CREATE TRIGGER facts_are_not_truncated BEFORE TRUNCATE ON passports.facts
    FOR EACH STATEMENT EXECUTE FUNCTION passports.refuse_change();
CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE ON passports.events
    FOR EACH ROW EXECUTE FUNCTION passports.refuse_change();
CREATE TRIGGER events_are_not_truncated BEFORE TRUNCATE ON passports.events
    FOR EACH STATEMENT EXECUTE FUNCTION passports.refuse_change();

-- The arguments are the statuses in their order; those at one place have a bar between them. `refused` is a step that
-- leaves one out.
CREATE FUNCTION passports.refuse_step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was integer;
    becomes integer;
BEGIN
    FOR place IN 1 .. TG_NARGS - 1 LOOP
        IF OLD.status = ANY (string_to_array(TG_ARGV[place], '|')) THEN was := place; END IF;
        IF NEW.status = ANY (string_to_array(TG_ARGV[place], '|')) THEN becomes := place; END IF;
    END LOOP;
    IF becomes < was OR (becomes = was AND NEW.status <> OLD.status) OR OLD.status || '>' || NEW.status = TG_ARGV[0] THEN
        RAISE EXCEPTION 'the status of passports.% does not go from % to %', TG_TABLE_NAME, OLD.status, NEW.status
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER document_status_goes_on BEFORE UPDATE OF status ON passports.document_versions
    FOR EACH ROW EXECUTE FUNCTION passports.refuse_step('', 'UPLOADED', 'VALIDATED|REJECTED');
CREATE TRIGGER snapshot_status_goes_on BEFORE UPDATE OF status ON passports.data_snapshots
    FOR EACH ROW EXECUTE FUNCTION passports.refuse_step('BUILDING>SEALED', 'BUILDING', 'READY', 'SEALED');
CREATE TRIGGER rules_status_goes_on BEFORE UPDATE OF status ON passports.rule_package_versions
    FOR EACH ROW EXECUTE FUNCTION passports.refuse_step('DRAFT>PUBLISHED', 'DRAFT', 'VALIDATED', 'PUBLISHED');
CREATE TRIGGER passport_status_goes_on BEFORE UPDATE OF status ON passports.passport_versions
    FOR EACH ROW EXECUTE FUNCTION passports.refuse_step('', 'COMPILING', 'SIGNED', 'ACTIVE', 'REVOKED');

CREATE TRIGGER sealed_snapshots_stay BEFORE UPDATE OR DELETE ON passports.data_snapshots
    FOR EACH ROW WHEN (OLD.status = 'SEALED') EXECUTE FUNCTION passports.refuse_change();

CREATE FUNCTION passports.refuse_items_of_sealed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The lock keeps the snapshot from being sealed while its items change; the second look sees what came before it.
    PERFORM FROM passports.data_snapshots WHERE id IN (OLD.snapshot_id, NEW.snapshot_id) FOR SHARE;
    IF EXISTS (SELECT 1 FROM passports.data_snapshots
               WHERE id IN (OLD.snapshot_id, NEW.snapshot_id) AND status = 'SEALED') THEN
        RAISE EXCEPTION 'items of a sealed snapshot stay as they are' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN coalesce(NEW, OLD);
END
$$;
CREATE TRIGGER items_of_sealed_snapshots_stay BEFORE INSERT OR UPDATE OR DELETE ON passports.data_snapshot_items
    FOR EACH ROW EXECUTE FUNCTION passports.refuse_items_of_sealed();

CREATE TRIGGER rules_that_left_draft_stay BEFORE UPDATE OF rules_source, tests_source ON passports.rule_package_versions
    FOR EACH ROW WHEN (
        OLD.status <> 'DRAFT'
        AND (OLD.rules_source, OLD.tests_source) IS DISTINCT FROM (NEW.rules_source, NEW.tests_source)
    ) EXECUTE FUNCTION passports.refuse_change();

CREATE TRIGGER compiled_columns_stay BEFORE UPDATE ON passports.passport_versions
    FOR EACH ROW WHEN (
        (OLD.id, OLD.tenant_id, OLD.passport_id, OLD.version, OLD.snapshot_id, OLD.rule_package_version_id,
         OLD.payload_canonical, OLD.payload_hash, OLD.proof_canonical, OLD.proof_root_hash, OLD.receipt_canonical,
         OLD.receipt_hash, OLD.compiler_build_id, OLD.issued_at)
        IS DISTINCT FROM
        (NEW.id, NEW.tenant_id, NEW.passport_id, NEW.version, NEW.snapshot_id, NEW.rule_package_version_id,
         NEW.payload_canonical, NEW.payload_hash, NEW.proof_canonical, NEW.proof_root_hash, NEW.receipt_canonical,
         NEW.receipt_hash, NEW.compiler_build_id, NEW.issued_at)
        OR (OLD.signature IS NOT NULL
            AND (OLD.signature, OLD.signing_key_id, OLD.signing_key_public)
                IS DISTINCT FROM (NEW.signature, NEW.signing_key_id, NEW.signing_key_public))
        OR (OLD.qr_payload IS NOT NULL
            AND (OLD.qr_payload, OLD.qr_png) IS DISTINCT FROM (NEW.qr_payload, NEW.qr_png))
    ) EXECUTE FUNCTION passports.refuse_change();
