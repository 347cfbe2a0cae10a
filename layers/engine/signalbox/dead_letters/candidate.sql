-- columns: what decides whether dead letter l with job j can be redriven, in the order of Candidate
l.id::text, l.source, l.status, l.job_type, l.error_type AS error,
    coalesce(l.original_job_id::text, l.metadata ->> 'job_id') AS job_id, j.status AS job_status, j.job_group,
    (
        SELECT jsonb_agg(jsonb_build_array(p.id, p.status) ORDER BY p.id)
        FROM signalbox.job_dependencies AS d JOIN signalbox.jobs AS p ON p.id = d.depends_on_job_id
        WHERE d.job_id = l.original_job_id AND NOT d.satisfied AND p.status IN ('failed', 'cancelled')
    ) AS blockers,
    CASE WHEN l.source = 'invocation' THEN coalesce(l.metadata -> 'input', l.payload) END AS payload,
    l.metadata ->> 'function' AS function
