-- lock: lock the session's classification; return whether it is flagged, what was decided, and since when it waits
SELECT manual_review_required OR cross_profile_risk_detected, review_decision, clock_timestamp() - created_at
FROM records.profile_classification_audit WHERE processing_session_id = %(session)s FOR UPDATE;

-- set_status: set the file's status, as long as the session is its own
UPDATE records.shell_files SET status = %(status)s
WHERE id = %(file)s AND processing_session_id = %(session)s AND status <> %(status)s;

-- go_on: let a file that waited for a decision be processed
UPDATE records.shell_files SET status = 'processing'
WHERE id = %(file)s AND processing_session_id = %(session)s AND status = 'awaiting_review';
