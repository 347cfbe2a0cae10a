-- write_error: an error that did not end the job
INSERT INTO compliance.audit_logs (company_id, action_type, entity_type, entity_id, previous_values, new_values)
VALUES (%(company_id)s, 'JOB_ERROR', 'BACKGROUND_JOB', %(job_id)s, %(payload)s, %(error)s);
