-- beat: the lease's jobs are being worked on; answers which of them somebody wants to be cancelled
UPDATE signalbox.jobs AS j
SET heartbeat_at = clock_timestamp(), health_status = 'HEALTHY', updated_at = clock_timestamp(),
    progress_percent = CASE WHEN j.id = %(job_id)s THEN coalesce(%(percent)s, j.progress_percent) ELSE j.progress_percent END,
    progress_message = CASE WHEN j.id = %(job_id)s THEN coalesce(%(message)s, j.progress_message) ELSE j.progress_message END
WHERE j.status = 'running' AND j.lease_token = %(token)s
RETURNING j.id::text, j.cancel_requested_at IS NOT NULL;
