-- serves: 1
-- The tables of the forecast platform that its scheduled tasks read and write.

CREATE TABLE forecasts.plan_limits (
    plan text PRIMARY KEY,
    api_calls_per_day bigint NOT NULL,
    watchpoints bigint NOT NULL,
    CONSTRAINT limits_not_negative CHECK (api_calls_per_day >= 0 AND watchpoints >= 0)
);

CREATE TABLE forecasts.organizations (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name text NOT NULL,
    plan text NOT NULL REFERENCES forecasts.plan_limits,
    status text NOT NULL DEFAULT 'active',
    timezone text NOT NULL DEFAULT 'UTC',
    notification_preferences jsonb NOT NULL DEFAULT '{}',
    next_digest_at timestamptz,
    last_digest_generated_at timestamptz,
    stripe_customer_id text,
    subscription_status text,
    last_billing_sync_at timestamptz,
    billing_sync_failed_at timestamptz,
    payment_failed_at timestamptz,
    overage_started_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz
);
-- trigger_digests: the organisations that are due, page by page.
CREATE INDEX organizations_digest_due ON forecasts.organizations (next_digest_at, id) WHERE deleted_at IS NULL;
-- sync_stripe: organisations that were never synced first, then the longest ago. One that failed goes to the end, so
-- that organisations that always fail can't delay the others.
CREATE INDEX organizations_billing_stale
    ON forecasts.organizations ((greatest(last_billing_sync_at, billing_sync_failed_at)) NULLS FIRST, id)
    WHERE deleted_at IS NULL;
-- cleanup_soft_deletes, and the tasks enforce_*; there are never many rows.
CREATE INDEX organizations_deleted ON forecasts.organizations (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX organizations_payment_failed ON forecasts.organizations (payment_failed_at)
    WHERE payment_failed_at IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX organizations_in_overage ON forecasts.organizations (overage_started_at)
    WHERE overage_started_at IS NOT NULL AND deleted_at IS NULL;

CREATE TABLE forecasts.watchpoints (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organization_id uuid NOT NULL REFERENCES forecasts.organizations ON DELETE CASCADE,
    name text NOT NULL,
    tile_id text NOT NULL,
    status text NOT NULL DEFAULT 'active',
    time_window_end timestamptz,
    archived_at timestamptz,
    archived_reason text,
    paused_at timestamptz,
    paused_reason text,
    is_triggered boolean NOT NULL DEFAULT false,
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT watchpoint_status_known CHECK (status IN ('active', 'paused', 'archived')),
    CONSTRAINT archived_at_iff_archived CHECK ((status = 'archived') = (archived_at IS NOT NULL)),
    CONSTRAINT paused_at_where_paused CHECK (status <> 'paused' OR paused_at IS NOT NULL)
);
CREATE INDEX watchpoints_of_organization ON forecasts.watchpoints (organization_id, status, created_at);
-- archive_watchpoints: events that have passed, page by page.
CREATE INDEX idx_watchpoints_archive_candidates ON forecasts.watchpoints (time_window_end, id)
    WHERE status = 'active' AND time_window_end IS NOT NULL;
-- cleanup_archived_watchpoints.
CREATE INDEX watchpoints_archived ON forecasts.watchpoints (archived_at, id) WHERE status = 'archived';
-- verification: canaries; there are only a few.
CREATE INDEX watchpoints_canaries ON forecasts.watchpoints (id) WHERE metadata ->> 'system_role' = 'canary';

CREATE TABLE forecasts.notifications (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organization_id uuid NOT NULL REFERENCES forecasts.organizations ON DELETE CASCADE,
    watchpoint_id uuid REFERENCES forecasts.watchpoints ON DELETE CASCADE,
    payload jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
-- For cleanup_notifications; the other two serve the cascades.
CREATE INDEX notifications_by_age ON forecasts.notifications (created_at);
CREATE INDEX notifications_of_organization ON forecasts.notifications (organization_id);
CREATE INDEX notifications_of_watchpoint ON forecasts.notifications (watchpoint_id) WHERE watchpoint_id IS NOT NULL;

CREATE TABLE forecasts.notification_deliveries (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    notification_id uuid NOT NULL REFERENCES forecasts.notifications ON DELETE CASCADE,
    channel text NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    next_retry_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT delivery_status_known CHECK (status IN ('pending', 'sent', 'deferred', 'failed'))
);
CREATE INDEX deliveries_of_notification ON forecasts.notification_deliveries (notification_id);
-- requeue_deferred: deliveries whose quiet hours have ended.
CREATE INDEX deliveries_deferred ON forecasts.notification_deliveries (next_retry_at, id) WHERE status = 'deferred';

CREATE TABLE forecasts.forecast_runs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    model text NOT NULL,
    run_timestamp timestamptz NOT NULL,
    status text NOT NULL DEFAULT 'running',
    external_id text,
    retry_count integer NOT NULL DEFAULT 0,
    failure_reason text,
    storage_prefix text,
    input_references text[] NOT NULL DEFAULT '{}',
    radar_timestamp timestamptz,
    started_at timestamptz,
    triggered_at timestamptz,
    completed_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT run_once_per_instant UNIQUE (model, run_timestamp),
    CONSTRAINT radar_once UNIQUE (radar_timestamp),
    CONSTRAINT radar_for_nowcasts CHECK (model = 'nowcast' OR radar_timestamp IS NULL),
    CONSTRAINT forecast_model_known CHECK (model IN ('medium_range', 'nowcast')),
    CONSTRAINT forecast_status_known CHECK (status IN ('running', 'complete', 'failed', 'deleted')),
    CONSTRAINT retries_not_negative CHECK (retry_count >= 0),
    CONSTRAINT failed_has_reason CHECK (status <> 'failed' OR failure_reason IS NOT NULL)
);
COMMENT ON COLUMN forecasts.forecast_runs.input_references IS 'The input files of the run, for its next attempt.';
COMMENT ON COLUMN forecasts.forecast_runs.radar_timestamp IS 'The radar instant of a nowcast, beside the satellite''s.';
COMMENT ON COLUMN forecasts.forecast_runs.started_at IS 'When the last attempt started, by the now of the task''s run.';
COMMENT ON COLUMN forecasts.forecast_runs.triggered_at IS
    'When RunPod was last asked for it, by the clock. It names the attempt, and gives the real age of a RunPod job.';
-- reconcile_forecasts and the poller's second check: few runs are running at any time.
CREATE INDEX forecast_runs_running ON forecasts.forecast_runs (started_at) WHERE status = 'running';
-- transition_forecasts and verification.
CREATE INDEX forecast_runs_stored ON forecasts.forecast_runs (model, run_timestamp)
    WHERE status IN ('complete', 'failed');
-- transition_forecasts: does a folder also hold the data of another run? In byte order, so that a folder is a range.
CREATE INDEX forecast_runs_by_prefix ON forecasts.forecast_runs (storage_prefix COLLATE "C") WHERE status <> 'deleted';

CREATE TABLE forecasts.rate_limits (
    organization_id uuid NOT NULL REFERENCES forecasts.organizations ON DELETE CASCADE,
    source text NOT NULL,
    api_calls_count bigint NOT NULL DEFAULT 0,
    watchpoints_count bigint NOT NULL DEFAULT 0,
    period_start timestamptz NOT NULL,
    period_end timestamptz NOT NULL,
    PRIMARY KEY (organization_id, source),
    CONSTRAINT counts_not_negative CHECK (api_calls_count >= 0 AND watchpoints_count >= 0),
    CONSTRAINT period_in_order CHECK (period_start < period_end)
);
-- aggregate_usage: periods that have ended, page by page.
CREATE INDEX rate_limits_ended ON forecasts.rate_limits (period_end, organization_id, source);

CREATE TABLE forecasts.usage_history (
    organization_id uuid NOT NULL REFERENCES forecasts.organizations ON DELETE CASCADE,
    date date NOT NULL,
    source text NOT NULL,
    api_calls bigint NOT NULL DEFAULT 0,
    watchpoints bigint NOT NULL DEFAULT 0,
    notifications bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, date, source)
);

CREATE TABLE forecasts.verification_results (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    forecast_run_id uuid NOT NULL REFERENCES forecasts.forecast_runs ON DELETE CASCADE,
    tile_id text NOT NULL,
    metric text NOT NULL,
    value double precision NOT NULL,
    sample_count integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX verification_results_of_run ON forecasts.verification_results (forecast_run_id);
-- update_calibration: which tiles have enough.
CREATE INDEX verification_results_by_tile ON forecasts.verification_results (created_at, tile_id);

CREATE TABLE forecasts.verification_requests (
    forecast_run_id uuid NOT NULL REFERENCES forecasts.forecast_runs ON DELETE CASCADE,
    window_start timestamptz NOT NULL,
    window_end timestamptz NOT NULL,
    status text NOT NULL DEFAULT 'waiting',
    external_id text,
    noted_at timestamptz NOT NULL,
    requested_at timestamptz,
    PRIMARY KEY (forecast_run_id, window_start),
    CONSTRAINT verification_window_in_order CHECK (window_start < window_end),
    CONSTRAINT verification_status_known
        CHECK (status IN ('waiting', 'unconfirmed', 'requested', 'refused', 'abandoned')),
    CONSTRAINT verification_id_iff_requested CHECK ((status = 'requested') = (external_id IS NOT NULL))
);
COMMENT ON TABLE forecasts.verification_requests IS
    'Requests to compare a run with observations: one for each run and window.';
COMMENT ON COLUMN forecasts.verification_requests.status IS
    'waiting for observations; unconfirmed: sent, but RunPod has not confirmed it, so it is never sent again; '
    'requested; refused by RunPod; abandoned, because the observations never came.';
-- For verification; there are never many rows.
CREATE INDEX verification_requests_open ON forecasts.verification_requests (window_start)
    WHERE status IN ('waiting', 'unconfirmed');

CREATE TABLE forecasts.calibration_coefficients (
    tile_id text PRIMARY KEY,
    coefficients jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE forecasts.calibration_candidates (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tile_id text NOT NULL,
    proposed jsonb NOT NULL,
    violation_reason text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    reviewed_at timestamptz
);
CREATE INDEX calibration_candidates_open ON forecasts.calibration_candidates (tile_id) WHERE reviewed_at IS NULL;

CREATE TABLE forecasts.calibration_requests (
    slot timestamptz PRIMARY KEY,
    tiles text[] NOT NULL,
    coefficients_before jsonb NOT NULL,
    requested_at timestamptz NOT NULL,
    external_id text
);
COMMENT ON TABLE forecasts.calibration_requests IS
    'Requests to RunPod to calibrate tiles: one for each slot of update_calibration. Without an external_id, RunPod has not accepted it.';

CREATE TABLE forecasts.idempotency_keys (
    key text PRIMARY KEY,
    organization_id uuid REFERENCES forecasts.organizations ON DELETE CASCADE,
    response jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX idempotency_keys_expired ON forecasts.idempotency_keys (expires_at);
CREATE INDEX idempotency_keys_of_organization ON forecasts.idempotency_keys (organization_id)
    WHERE organization_id IS NOT NULL;

CREATE TABLE forecasts.security_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    source_ip inet,
    detail jsonb NOT NULL DEFAULT '{}',
    attempted_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX security_events_by_age ON forecasts.security_events (attempted_at);

CREATE TABLE forecasts.invites (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organization_id uuid NOT NULL REFERENCES forecasts.organizations ON DELETE CASCADE,
    email text NOT NULL,
    expires_at timestamptz NOT NULL,
    accepted_at timestamptz
);
CREATE INDEX invites_of_organization ON forecasts.invites (organization_id);
CREATE INDEX invites_expired ON forecasts.invites (expires_at) WHERE accepted_at IS NULL;

CREATE TABLE forecasts.audit_logs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid,
    actor text NOT NULL,
    action text NOT NULL,
    entity_type text NOT NULL,
    entity_id text NOT NULL,
    detail jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE forecasts.audit_logs IS
    'Kept longer than the organisation: no foreign key, so that a deletion stays on record.';
-- archive_audit_logs: the oldest, in the order of their ids.
CREATE INDEX audit_logs_by_age ON forecasts.audit_logs (created_at, id);
-- verification: a canary's mismatch is recorded once for each slot, even if the slot runs several times.
CREATE UNIQUE INDEX canary_mismatch_once ON forecasts.audit_logs (entity_id, (detail ->> 'slot'))
    WHERE action = 'canary.mismatched';

CREATE TABLE forecasts.audit_archives (
    key text PRIMARY KEY,
    first_id bigint NOT NULL,
    last_id bigint NOT NULL,
    ids bigint[],
    planned_at timestamptz NOT NULL,
    archived_at timestamptz,
    row_count bigint,
    bytes bigint,
    sha256 text,
    CONSTRAINT ids_while_planned CHECK ((ids IS NULL) = (archived_at IS NOT NULL)),
    CONSTRAINT archived_is_known
        CHECK (archived_at IS NULL OR (row_count IS NOT NULL AND bytes IS NOT NULL AND sha256 IS NOT NULL))
);
COMMENT ON TABLE forecasts.audit_archives IS
    'Which audit records are in which object of cold storage. The row without archived_at is being uploaded.';
COMMENT ON COLUMN forecasts.audit_archives.sha256 IS 'The checksum of the stored object, in Base64, as S3 returns it.';
-- archive_audit_logs: one plan at a time, so that no record can be in two.
CREATE UNIQUE INDEX audit_archive_open ON forecasts.audit_archives ((archived_at IS NULL)) WHERE archived_at IS NULL;
