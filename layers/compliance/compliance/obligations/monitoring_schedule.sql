-- find: a page of the obligations that are not done with, each with whether it recurs
SELECT o.id::text, (o.frequency IS NOT NULL AND o.base_date IS NOT NULL)::int
FROM compliance.obligations o
WHERE o.company_id = %(company_id)s AND o.deleted_at IS NULL AND o.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
  AND (%(site_id)s::uuid IS NULL OR o.site_id = %(site_id)s)
  AND (%(after)s::uuid IS NULL OR o.id > %(after)s)
  AND NOT EXISTS (SELECT 1 FROM compliance.sites s WHERE s.id = o.site_id AND s.deleted_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM compliance.documents d WHERE d.id = o.document_id AND d.deleted_at IS NOT NULL)
ORDER BY o.id LIMIT %(limit)s;

-- update: the deadlines, the schedules and the statuses of some obligations, in one statement
-- `IS NOT DISTINCT FROM`: else the planner reads all deadlines of the company for each of its obligations.
WITH dated AS (
    SELECT o.*, s.id AS schedule_id, s.next_due_date, s.status IS NOT DISTINCT FROM 'PAUSED' AS is_paused,
           %(force)s OR s.id IS NOT NULL AND (s.frequency, s.base_date) IS DISTINCT FROM (o.frequency, o.base_date)
               AS is_moved,
           o.frequency IS NOT NULL AND o.base_date IS NOT NULL AS recurs, t.zone,
           (%(slot)s::timestamptz AT TIME ZONE t.zone)::date AS today
    FROM compliance.obligations o
    JOIN compliance.companies c ON c.id = o.company_id
    LEFT JOIN compliance.sites p ON p.id = o.site_id AND p.company_id = o.company_id
    LEFT JOIN compliance.schedules s ON s.obligation_id = o.id
    CROSS JOIN LATERAL (SELECT coalesce(p.timezone, c.timezone, 'UTC') AS zone) t
    WHERE o.id = ANY (%(ids)s::uuid[]) AND o.company_id = %(company_id)s
), done AS (
    -- What there is, what has been completed up to that day, and the n of the grid's beginning: 0 on base_date itself.
    SELECT o.*, d.last_completed, coalesce(d.dates, '{}') AS dates, coalesce(d.open_dates, '{}') AS open_dates,
           CASE WHEN d.has_base OR o.frequency = 'ONE_TIME' THEN 0 ELSE 1 END AS begins
    FROM dated o CROSS JOIN LATERAL (
        SELECT max(d.due_date) FILTER (
                   WHERE d.status = 'COMPLETED' AND (d.completed_at AT TIME ZONE o.zone)::date <= o.today
               ) AS last_completed,
               bool_or(d.due_date = o.base_date) AS has_base, array_agg(d.due_date) AS dates,
               array_agg(d.due_date) FILTER (WHERE d.status IN ('PENDING', 'DUE_SOON')) AS open_dates
        FROM compliance.deadlines d WHERE d.obligation_id = o.id AND d.company_id IS NOT DISTINCT FROM o.company_id
    ) d
), placed AS (
    -- The n of the first grid date that is due, null where nothing is made; and of the last one within 90 days.
    SELECT o.*, f.is_finished, f.first,
           greatest(f.first, CASE WHEN o.frequency = 'ONE_TIME' THEN 0
                ELSE compliance.grid_number_after(o.base_date, o.frequency, o.today + 90) - 1 END) AS last
    FROM done o CROSS JOIN LATERAL (
        SELECT o.frequency = 'ONE_TIME' AND coalesce(o.last_completed >= o.base_date, false) AS is_finished
    ) e CROSS JOIN LATERAL (
        SELECT e.is_finished,
               CASE WHEN o.recurs AND NOT o.is_paused AND NOT e.is_finished THEN greatest(
                   o.begins, coalesce(compliance.grid_number_after(o.base_date, o.frequency, o.last_completed), 0)
               ) END AS first
    ) f
), planned AS (
    SELECT o.*,
           CASE WHEN o.first IS NULL THEN o.deadline_date
                ELSE compliance.grid_date(o.base_date, o.frequency, o.first) END AS new_deadline,
           array(SELECT compliance.grid_date(o.base_date, o.frequency, n) FROM generate_series(o.first, o.last) n
                 WHERE compliance.grid_date(o.base_date, o.frequency, n) <> ALL (o.dates)) AS missing,
           CASE WHEN o.is_moved AND o.recurs AND NOT o.is_paused THEN array(
               SELECT d.due_date FROM compliance.deadlines d
               WHERE d.obligation_id = o.id AND d.company_id IS NOT DISTINCT FROM o.company_id
                 AND d.status = 'PENDING' AND d.due_date > o.today
                 AND NOT compliance.is_on_grid(o.base_date, o.frequency, d.due_date, o.begins)
           ) ELSE '{}' END AS off_grid
    FROM placed o
), judged AS (
    SELECT o.*,
           CASE WHEN o.is_finished THEN 'COMPLETED'
                WHEN o.new_deadline < o.today AND m.status IN ('PENDING', 'DUE_SOON', 'IN_PROGRESS') THEN 'OVERDUE'
                WHEN o.new_deadline BETWEEN o.today AND o.today + 7 AND m.status = 'PENDING' THEN 'DUE_SOON'
                ELSE m.status END AS new_status,
           (SELECT min(day) FROM unnest(o.open_dates || o.missing) day WHERE day <> ALL (o.off_grid)) AS next_due
    FROM planned o
    -- Another deadline begins again.
    CROSS JOIN LATERAL (
        SELECT CASE WHEN o.deadline_date <> o.new_deadline THEN 'PENDING' ELSE o.status END AS status
    ) m
), scheduled AS (
    INSERT INTO compliance.schedules (obligation_id, frequency, base_date, next_due_date)
    SELECT id, frequency, base_date, next_due FROM judged
    WHERE recurs AND NOT is_paused
      AND (schedule_id IS NULL OR is_moved OR next_due_date IS DISTINCT FROM next_due)
    ON CONFLICT (obligation_id) DO UPDATE
    SET frequency = excluded.frequency, base_date = excluded.base_date, next_due_date = excluded.next_due_date,
        updated_at = now()
    RETURNING id, obligation_id
), removed AS (
    DELETE FROM compliance.deadlines d USING judged o
    WHERE o.off_grid <> '{}' AND d.obligation_id = o.id AND d.company_id = o.company_id
      AND d.due_date = ANY (o.off_grid)
), made AS (
    INSERT INTO compliance.deadlines
        (obligation_id, schedule_id, company_id, site_id, due_date, compliance_period_start, compliance_period_end)
    SELECT o.id, coalesce(o.schedule_id, s.id), o.company_id, o.site_id, g.due,
           CASE WHEN n > 0 THEN compliance.grid_date(o.base_date, o.frequency, n - 1) END, g.due - 1
    FROM judged o
    LEFT JOIN scheduled s ON s.obligation_id = o.id
    CROSS JOIN LATERAL unnest(o.missing) g (due)
    CROSS JOIN LATERAL compliance.grid_number(o.base_date, o.frequency, g.due) n
    ON CONFLICT (obligation_id, due_date) DO NOTHING
    RETURNING 1
), changed AS (
    UPDATE compliance.obligations t
    SET deadline_date = o.new_deadline, status = o.new_status, updated_at = now()
    FROM judged o
    WHERE t.id = o.id AND t.company_id = o.company_id
      AND (o.deadline_date, o.status) IS DISTINCT FROM (o.new_deadline, o.new_status)
    RETURNING o.status AS old_status, t.status
)
SELECT (SELECT count(*) FROM judged WHERE recurs), (SELECT count(*) FROM made),
       count(*) FILTER (WHERE status = 'DUE_SOON' AND old_status <> 'DUE_SOON'),
       count(*) FILTER (WHERE status = 'OVERDUE' AND old_status <> 'OVERDUE')
FROM changed;
