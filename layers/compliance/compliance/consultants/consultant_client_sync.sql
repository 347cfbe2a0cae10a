-- find: a page of the consultant's clients
SELECT client_company_id::text FROM compliance.consultant_client_assignments
WHERE consultant_id = %(consultant_id)s AND status = 'ACTIVE' AND client_company_id IS NOT NULL
  AND (%(after)s::uuid IS NULL OR client_company_id > %(after)s)
ORDER BY client_company_id LIMIT %(limit)s;

-- deactivate: the assignments to companies that are deleted, or for which the consultant has no role any more
UPDATE compliance.consultant_client_assignments a
SET status = 'INACTIVE', updated_at = now(),
    status_reason = CASE WHEN c.deleted_at IS NOT NULL THEN 'CLIENT_DELETED' ELSE 'ROLE_MISSING' END
FROM compliance.companies c
WHERE a.consultant_id = %(consultant_id)s AND a.client_company_id = ANY (%(clients)s::uuid[]) AND a.status = 'ACTIVE'
  AND c.id = a.client_company_id
  AND (c.deleted_at IS NOT NULL
       OR NOT EXISTS (SELECT 1 FROM compliance.user_roles r
                      WHERE r.user_id = a.consultant_id AND r.company_id = c.id AND r.role = 'CONSULTANT'));

-- write_dashboards: one for each live client of these that is still assigned
INSERT INTO compliance.consultant_dashboards
    (consultant_id, client_company_id, compliance_score, due_count, on_time_count, overdue_count, data)
SELECT a.consultant_id, c.id, round(100.0 * n.on_time_count / nullif(n.due_count, 0), 1), n.due_count, n.on_time_count,
       n.overdue_count, jsonb_build_object('upcoming', coalesce(u.upcoming, '[]'), 'recent_activity', coalesce(r.recent, '[]'))
FROM compliance.consultant_client_assignments a
JOIN compliance.companies c ON c.id = a.client_company_id AND c.deleted_at IS NULL
CROSS JOIN LATERAL (SELECT (%(slot)s::timestamptz AT TIME ZONE coalesce(c.timezone, 'UTC'))::date AS today) t
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE d.due_date BETWEEN t.today - interval '12 months' AND t.today - 1) AS due_count,
           count(*) FILTER (
               WHERE d.due_date BETWEEN t.today - interval '12 months' AND t.today - 1
                 AND (d.completed_at AT TIME ZONE coalesce(c.timezone, 'UTC'))::date <= d.due_date
           ) AS on_time_count,
           count(*) FILTER (WHERE d.status = 'OVERDUE') AS overdue_count
    FROM compliance.deadlines d
    JOIN compliance.obligations o ON o.id = d.obligation_id AND o.company_id = d.company_id AND o.deleted_at IS NULL
    WHERE d.company_id = c.id
      AND NOT EXISTS (SELECT 1 FROM compliance.sites p WHERE p.id = o.site_id AND p.deleted_at IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM compliance.documents f WHERE f.id = o.document_id AND f.deleted_at IS NOT NULL)
) n
CROSS JOIN LATERAL (
    SELECT jsonb_agg(jsonb_build_object(
               'deadline_id', d.id, 'obligation_id', o.id, 'site_id', o.site_id, 'due_date', d.due_date,
               'status', d.status, 'summary', coalesce(o.summary, o.obligation_title)
           ) ORDER BY d.due_date, d.id) AS upcoming
    FROM compliance.deadlines d
    JOIN compliance.obligations o ON o.id = d.obligation_id AND o.company_id = d.company_id AND o.deleted_at IS NULL
    WHERE d.company_id = c.id AND d.status IN ('PENDING', 'DUE_SOON') AND d.due_date BETWEEN t.today AND t.today + 30
      AND NOT EXISTS (SELECT 1 FROM compliance.sites p WHERE p.id = o.site_id AND p.deleted_at IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM compliance.documents f WHERE f.id = o.document_id AND f.deleted_at IS NOT NULL)
) u
CROSS JOIN LATERAL (
    SELECT jsonb_agg(jsonb_build_object(
               'action_type', l.action_type, 'entity_type', l.entity_type, 'entity_id', l.entity_id,
               'user_id', l.user_id, 'created_at', l.created_at
           ) ORDER BY l.created_at DESC, l.id) AS recent
    FROM (SELECT * FROM compliance.audit_logs l WHERE l.company_id = c.id ORDER BY l.created_at DESC, l.id LIMIT 20) l
) r
WHERE a.consultant_id = %(consultant_id)s AND a.client_company_id = ANY (%(clients)s::uuid[]) AND a.status = 'ACTIVE'
ON CONFLICT (consultant_id, client_company_id) DO UPDATE
SET compliance_score = excluded.compliance_score, due_count = excluded.due_count,
    on_time_count = excluded.on_time_count, overdue_count = excluded.overdue_count, data = excluded.data,
    updated_at = now();

-- user: whether the consultant is a live user
SELECT 1 FROM compliance.users WHERE id = %(consultant_id)s AND deleted_at IS NULL;
