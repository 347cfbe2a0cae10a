-- fill: companies with a site and obligations each, of which nearly all recur monthly
WITH company AS (
    INSERT INTO compliance.companies (name) SELECT 'company-' || n FROM generate_series(1, %(companies)s) AS n
    RETURNING id
), site AS (
    INSERT INTO compliance.sites (company_id, name) SELECT id, 'works' FROM company RETURNING id, company_id
)
INSERT INTO compliance.obligations (company_id, site_id, summary, frequency, base_date)
SELECT company_id, id, 'Check the bund',
       CASE WHEN n %% 100 = 0 THEN 'DAILY' WHEN n %% 100 < 5 THEN 'WEEKLY' ELSE 'MONTHLY' END,
       %(slot)s::date - n %% 28
FROM site CROSS JOIN generate_series(1, %(obligations)s) AS n;

-- fan_out: as many jobs as the task submits, in one statement
INSERT INTO signalbox.jobs (
    job_type, lane, status, payload, tenant, idempotency_key, created_by, max_attempts, timeout_ms, send_at, queued_at
)
SELECT 'monitoring_schedule', 'normal', 'queued', jsonb_build_object('company_id', id, 'slot', %(slot)s::text), id,
       'monitoring_schedule:' || id || ':' || %(slot)s, 'bench', 3, 300000, now() + interval '1 min', now()
FROM compliance.companies WHERE deleted_at IS NULL
ON CONFLICT (job_type, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING;

-- submitted: the jobs of a task
SELECT id::text FROM signalbox.jobs WHERE created_by = %(task)s ORDER BY id;

-- ended: how many jobs of a task are completed, and how many obligations these have looked at
SELECT count(*), coalesce(sum((result ->> 'obligations')::int), 0)::int
FROM signalbox.jobs WHERE created_by = %(task)s AND status = 'completed';

-- held: for how many seconds the oldest transaction that has written or locked a row is open
SELECT extract(epoch FROM clock_timestamp() - min(a.xact_start))::float
FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid
WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
    AND a.datname = current_database() AND a.backend_type = 'client backend'
HAVING count(*) > 0;

-- source: return the text of the function that the jobs call
SELECT prosrc FROM pg_proc WHERE oid = 'compliance.calculate_deadlines'::regproc;
