-- serves: 1
-- Where many jobs with keys are copied to before they are stored: COPY itself can't leave out those that are there.

CREATE UNLOGGED TABLE signalbox.job_rows AS
SELECT
    id, payload, idempotency_key, subject_id, correlation_id,
    job_type, job_name, job_category, lane, priority, status, payload_version, tenant, cap_key, job_group, parent_job_id,
    schedule_id, unmet_dependencies, tags, metadata, created_by, max_attempts, timeout_ms, scheduled_for, send_at, queued_at,
    estimated_duration
FROM signalbox.jobs WITH NO DATA;
-- Each submit inserts and deletes its rows in one transaction: no other ever sees one, and only dead rows stay.
ALTER TABLE signalbox.job_rows SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
COMMENT ON TABLE signalbox.job_rows IS 'Jobs with keys on their way into the table of jobs; empty but within a submit.';
