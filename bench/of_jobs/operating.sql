-- fill_jobs: add jobs of the last days, the newest twentieth waiting; some types, groups and keys are of old jobs alone
INSERT INTO signalbox.jobs (
    id, job_type, lane, status, payload, tenant, cap_key, subject_id, correlation_id, job_group, parent_job_id, schedule_id,
    unmet_dependencies, tags, attempts, executions, max_attempts, timeout_ms, scheduled_for, send_at, worker_id,
    lease_token, lease_expires_at, heartbeat_at, paused_by, held_by, held_since, error_details, created_at, updated_at,
    queued_at, started_at, completed_at
)
SELECT overlay(gen_random_uuid()::text PLACING left(signalbox.first_id(at)::text, 14) FROM 1 FOR 14)::uuid,
    CASE WHEN n %% 100000 = 5 THEN 'type_rare' WHEN old AND n %% 2 = 0 THEN 'type_old' WHEN n %% 2 = 0 THEN 'type_0'
        ELSE 'type_' || n %% 36 / 2 END,
    CASE WHEN n %% 20 = 0 AND n < %(jobs)s / 2 THEN 'high' WHEN n %% 7 = 0 THEN 'low' ELSE 'normal' END,
    status, jsonb_build_object('number', n),
    CASE WHEN n %% 100000 = 5 THEN 'tenant_rare' ELSE 'tenant_' || n %% 48 END,
    CASE WHEN n %% 10 <> 1 THEN NULL WHEN old THEN 'key_old' WHEN n %% 20 = 1 THEN 'key_common' ELSE 'key_' || n %% 200 END,
    CASE WHEN n %% 2 = 0 THEN 'subject_' || n / 5 END, CASE WHEN n %% 2 = 0 THEN 'correlation_' || n / 20 END,
    CASE WHEN old THEN 'group_old' WHEN n %% 5 = 0 THEN 'group_' || n / 1000 END,
    CASE WHEN n %% 20 = 2 THEN md5('parent_' || CASE WHEN old THEN -1 ELSE n / 1000 END)::uuid END,
    CASE WHEN n %% 50 = 0 THEN md5('schedule_' || n / 50 %% 500)::uuid END,
    (state = 'blocked')::integer,
    CASE WHEN old THEN '{tag_old}'::text[] WHEN n %% 10 < 3 THEN ARRAY['night', 'batch_' || n / 1000] END,
    1, 1, 3, 300000, CASE WHEN state = 'pending' THEN at + n %% 48 * interval '1 h' END,
    CASE WHEN state IN ('pending', 'queued') THEN at + n %% 48 * interval '1 h' END,
    CASE WHEN state = 'running' THEN 'bench' END, CASE WHEN state = 'running' THEN gen_random_uuid() END,
    CASE WHEN state = 'running' THEN now() + interval '1 min' END, CASE WHEN state = 'running' THEN now() END,
    CASE WHEN state = 'paused' AND n %% 2 = 0 THEN 'bench' END, CASE WHEN state = 'held' THEN 'key:key_7' END,
    CASE WHEN state = 'held' THEN at END,
    CASE WHEN state = 'failed' THEN '{"type": "ValueError", "message": "it failed"}'::jsonb END, at, at + interval '1 s', at,
    CASE WHEN state IN ('running', 'completed', 'failed') THEN at END,
    CASE WHEN state IN ('completed', 'failed', 'cancelled') THEN at + interval '1 s' * (n %% 10) / 10 END
FROM generate_series(1, %(jobs)s) AS n
CROSS JOIN LATERAL (
    SELECT %(now)s - (%(jobs)s - n) * %(days)s * interval '1 d' / %(jobs)s AS at, n <= %(jobs)s / 10 AS old,
        CASE WHEN n <= %(jobs)s / 20 * 19 THEN
            CASE WHEN n %% 50 = 7 THEN 'failed' WHEN n %% 100 = 3 THEN 'cancelled' ELSE 'completed' END
        ELSE CASE WHEN n %% 100 < 60 THEN 'pending' WHEN n %% 100 < 90 THEN 'queued' WHEN n %% 100 < 94 THEN 'blocked'
            WHEN n %% 100 < 97 THEN 'held' WHEN n %% 100 < 99 THEN 'paused' ELSE 'running' END END AS state
) AS made
CROSS JOIN LATERAL (SELECT CASE WHEN state IN ('blocked', 'held') THEN 'pending' ELSE state END AS status) AS kept;

-- fill_attempts: add the attempts of the jobs that have ended
INSERT INTO signalbox.job_executions (
    job_id, attempt_number, job_type, lane, status, lease_token, worker_id, queued_at, started_at, completed_at
)
SELECT id, 1, job_type, lane, status, id, 'bench', queued_at, started_at, completed_at FROM signalbox.jobs
WHERE status IN ('completed', 'failed');

-- fill_dead_letters: add one for each failed job, of 200 kinds
INSERT INTO signalbox.dead_letter_jobs (
    original_job_id, job_type, payload, failure_reason, error_type, final_error_message, total_attempts, fingerprint,
    status, resolved_at, tenant, first_failed_at, last_failed_at
)
SELECT id, job_type, payload, 'exhausted', 'ValueError', repeat('it failed ', 20), 3,
    md5('kind_' || (payload ->> 'number')::integer / 50 %% 200),
    CASE WHEN is_open THEN 'pending' ELSE 'resolved' END, CASE WHEN NOT is_open THEN completed_at END, tenant,
    created_at, completed_at
FROM signalbox.jobs CROSS JOIN LATERAL (SELECT (payload ->> 'number')::integer / 50 %% 4 > 0 AS is_open) AS triaged
WHERE status = 'failed';

-- fill_metrics: add roll-ups of a day by the minute, of 30 by the hour, of 400 by the day
INSERT INTO signalbox.job_metrics (
    period, starts_at, job_type, lane, begun, completed, total_ms, most_ms, durations, waits
)
SELECT period, starts_at, 'type_' || type, 'normal', 10, 10, 1000, 200, array_fill(1, ARRAY[64]), array_fill(2, ARRAY[64])
FROM (VALUES ('minute', 1), ('hour', 30), ('day', 400)) AS p (period, days)
CROSS JOIN LATERAL generate_series(
    date_trunc(period, %(now)s - days * interval '1 day', 'UTC'), %(now)s - interval '2 min', ('1 ' || period)::interval
) AS starts_at
CROSS JOIN generate_series(0, 19) AS type;

-- fill_schedules: add 500 schedules
INSERT INTO signalbox.job_schedules (id, name, job_type, schedule_type, interval_ms, next_run_at)
SELECT md5('schedule_' || n)::uuid, 'schedule_' || n, 'type_' || n %% 18, 'interval', 60000, %(now)s
FROM generate_series(0, 499) AS n;

-- fill_caps: add caps of 100 keys
INSERT INTO signalbox.job_caps (kind, key, max_running, paused)
SELECT 'key', 'key_' || n, 10, n %% 10 = 0 FROM generate_series(0, 99) AS n;

-- fill_backfills: add 100 backfills of 1,000 slots each
WITH made AS (
    INSERT INTO signalbox.backfills (task, range_from, range_to, rate_per_minute, status, created_at, finished_at)
    SELECT 'prune_jobs', %(now)s - interval '30 d', %(now)s, 60, CASE WHEN n > 98 THEN 'running' ELSE 'completed' END,
        %(now)s - n * interval '1 h', CASE WHEN n <= 98 THEN %(now)s END
    FROM generate_series(1, 100) AS n
    RETURNING id
)
INSERT INTO signalbox.backfill_slots (backfill_id, slot, status, finished_at)
SELECT id, slot, 'succeeded', %(now)s
FROM made CROSS JOIN generate_series(%(now)s - interval '999 min', %(now)s, interval '1 min') AS slot;

-- fill_runs: add the runs of 200 tasks of other packs, over 35 days; one in ten thousand failed, was missed or is at work
INSERT INTO signalbox.job_history (
    job_type, slot, reference_time, trigger, status, items, error, reason, worker_id, started_at, finished_at
)
SELECT 'task_' || task, at, at, CASE WHEN n %% 100000 = 7 THEN 'backfill' ELSE 'schedule' END, status, 1,
    CASE WHEN status = 'failed' THEN '{"type": "ValueError"}'::jsonb END, CASE WHEN status = 'missed' THEN 'late' END,
    'bench', at, CASE WHEN status <> 'running' THEN at + interval '1 s' END
FROM generate_series(0, %(runs)s / 200 - 1) AS place
CROSS JOIN generate_series(0, 199) AS task
CROSS JOIN LATERAL (
    SELECT place::bigint * 200 + task AS n, %(now)s - (%(runs)s / 200 - place) * interval '35 d' / (%(runs)s / 200) AS at
) AS made
CROSS JOIN LATERAL (
    SELECT CASE WHEN n %% 10000 = 77 THEN 'failed' WHEN n %% 10000 = 78 THEN 'missed'
        WHEN n > %(runs)s - 20 THEN 'running' ELSE 'succeeded' END AS status
) AS ended;

-- add_runs: add the runs of one of the engine's tasks, and since when it is known
WITH known AS (
    INSERT INTO signalbox.task_schedules (task, schedule, known_since)
    SELECT %(task)s, %(schedule)s, min(slot) FROM unnest(%(slots)s::timestamptz[]) AS slot
)
INSERT INTO signalbox.job_history (job_type, slot, reference_time, trigger, status, worker_id, started_at, finished_at)
SELECT %(task)s, slot, slot, 'schedule', 'succeeded', 'bench', slot, slot + interval '1 s'
FROM unnest(%(slots)s::timestamptz[]) AS slot;

-- find_one: return a job of this status
SELECT id::text FROM signalbox.jobs WHERE status = %(status)s ORDER BY id DESC LIMIT 1;

-- find_samples: return a parent of many jobs and one of few, a schedule, and a place in the middle of the list
SELECT md5('parent_-1')::uuid::text, md5('parent_500')::uuid::text, md5('schedule_7')::uuid::text,
    signalbox.first_id(now() - %(days)s * interval '1 d' / 2)::text;

-- list_indexes: return the indexes of the ledger, but for its primary key
SELECT indexname, indexdef FROM pg_catalog.pg_indexes
WHERE schemaname = 'signalbox' AND tablename = 'job_history' AND indexname NOT LIKE '%%_pkey';
