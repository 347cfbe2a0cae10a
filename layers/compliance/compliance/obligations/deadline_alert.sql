-- find: a page of the obligations that have deadlines to look at, each with how many
SELECT d.obligation_id::text, count(*) FILTER (WHERE d.status IN ('PENDING', 'DUE_SOON'))::int
FROM compliance.deadlines d
JOIN compliance.obligations o ON o.id = d.obligation_id AND o.company_id = d.company_id AND o.deleted_at IS NULL
WHERE d.company_id = %(company_id)s
  AND (d.status IN ('PENDING', 'DUE_SOON')
       OR EXISTS (SELECT 1 FROM compliance.untold_deadlines u WHERE u.deadline_id = d.id AND u.company_id = d.company_id))
  -- A day more than any zone's today: `read` looks at each in its own zone.
  AND d.due_date <= (%(slot)s::timestamptz AT TIME ZONE 'UTC')::date + 8
  AND (%(site_id)s::uuid IS NULL OR o.site_id = %(site_id)s)
  AND (%(after)s::uuid IS NULL OR d.obligation_id > %(after)s)
  AND NOT EXISTS (SELECT 1 FROM compliance.sites s WHERE s.id = o.site_id AND s.deleted_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM compliance.documents p WHERE p.id = o.document_id AND p.deleted_at IS NOT NULL)
GROUP BY d.obligation_id ORDER BY d.obligation_id LIMIT %(limit)s;

-- read: the deadlines of some obligations that are due within 7 days, or whose alert had nobody to go to
SELECT d.id::text, d.obligation_id::text, o.site_id::text, p.name, d.due_date, d.due_date - t.today, d.status,
       d.due_date = max(d.due_date) FILTER (WHERE d.due_date < t.today) OVER (PARTITION BY d.obligation_id),
       (SELECT min(split_part(n.dedupe_key, ':', 3)::int) FROM compliance.notifications n
        WHERE n.company_id = d.company_id AND n.entity_id = d.id AND n.alert_type = 'DEADLINE_ALERT'
          AND n.dedupe_key LIKE 'DEADLINE_ALERT:%%'),
       coalesce(o.summary, o.obligation_title, ''), o.assigned_to::text
FROM compliance.deadlines d
JOIN compliance.obligations o ON o.id = d.obligation_id AND o.company_id = d.company_id
JOIN compliance.companies c ON c.id = d.company_id
LEFT JOIN compliance.sites p ON p.id = o.site_id AND p.company_id = o.company_id
CROSS JOIN LATERAL (
    SELECT (%(slot)s::timestamptz AT TIME ZONE coalesce(p.timezone, c.timezone, 'UTC'))::date AS today
) t
WHERE d.obligation_id = ANY (%(ids)s::uuid[]) AND d.company_id = %(company_id)s AND d.due_date <= t.today + 7
  AND (d.status IN ('PENDING', 'DUE_SOON')
       OR d.status = 'OVERDUE' AND EXISTS (
           SELECT 1 FROM compliance.untold_deadlines u WHERE u.deadline_id = d.id AND u.company_id = d.company_id))
ORDER BY d.obligation_id, d.due_date;

-- set_status: of some deadlines
UPDATE compliance.deadlines SET status = %(status)s, updated_at = now()
WHERE id = ANY (%(deadlines)s::uuid[]) AND company_id = %(company_id)s;

-- keep_untold: of these obligations' deadlines, those whose alert still has nobody to go to
WITH told AS (
    DELETE FROM compliance.untold_deadlines u USING compliance.deadlines d
    WHERE d.id = u.deadline_id AND d.obligation_id = ANY (%(ids)s::uuid[]) AND u.company_id = %(company_id)s
      AND NOT u.deadline_id = ANY (%(untold)s::uuid[])
)
INSERT INTO compliance.untold_deadlines (deadline_id, company_id)
SELECT id, %(company_id)s FROM unnest(%(untold)s::uuid[]) id
ON CONFLICT DO NOTHING;
