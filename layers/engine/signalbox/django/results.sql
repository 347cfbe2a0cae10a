-- read: return a task's job, with its attempts so far
SELECT j.payload, j.metadata, j.status, j.result, j.scheduled_for, j.created_at, j.first_started_at, j.started_at,
    j.completed_at, CASE WHEN j.status = 'running' THEN j.worker_id END, coalesce(x.attempts, '[]')
FROM signalbox.jobs AS j
LEFT JOIN LATERAL (
    SELECT jsonb_agg(jsonb_build_object(
        'status', e.status, 'worker', e.worker_id, 'type', e.error_code, 'message', e.error_message, 'at', e.error_stack
    ) ORDER BY e.attempt_number) AS attempts
    FROM signalbox.job_executions AS e WHERE e.job_id = j.id
) AS x ON true
WHERE j.id = %(id)s AND j.job_type = 'django_task' AND j.payload ->> 'backend' = %(backend)s;
