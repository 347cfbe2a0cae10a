-- The platform on the night of the story. Every time is given relative to its instant, in pg_temp.ago; clock times
-- and weekdays in the preferences fit 2026-01-05T02:30:00Z, a Monday, at which the demo fires every rule.

CREATE FUNCTION pg_temp.ago(span interval) RETURNS timestamptz
LANGUAGE sql STABLE AS $$ SELECT current_setting('story.at')::timestamptz - span $$;

INSERT INTO forecasts.plan_limits (plan, api_calls_per_day, watchpoints)
VALUES ('starter', 1000, 5), ('pro', 10000, 50);

-- Six organisations, from New York to Auckland, whose digests are due. Southern Vines has missed three of its daily ones
-- and gets one; Mars Rovers has a time zone that does not exist. Harbour Pilots, whose clock reads 21:30 on Sunday, has
-- quiet hours; those of Alpine Huts ended half an hour ago. Late Payers has not paid for nine days, Harbour Pilots has had
-- more watchpoints than its plan for sixteen.
INSERT INTO forecasts.organizations
    (id, name, plan, timezone, notification_preferences, next_digest_at, stripe_customer_id, subscription_status,
     last_billing_sync_at, payment_failed_at, overage_started_at, created_at)
VALUES
    ('00000000-0000-4000-8000-000000000001', 'Alpine Huts', 'pro', 'Europe/Zurich',
     '{"digest": {"enabled": true, "schedule": "daily", "time": "03:00"}, "quiet_hours": {"start": "22:00", "end": "03:00"}}',
     pg_temp.ago('30 minutes'), 'cus_alpine', 'active', pg_temp.ago('26 hours'), NULL, NULL, pg_temp.ago('2 years')),
    ('00000000-0000-4000-8000-000000000002', 'Harbour Pilots', 'starter', 'America/New_York',
     '{"digest": {"enabled": true, "schedule": "weekly", "time": "21:00", "weekday": 6},
       "quiet_hours": {"start": "21:15", "end": "07:00"}}',
     pg_temp.ago('30 minutes'), 'cus_harbour', 'active', pg_temp.ago('26 hours'), NULL, pg_temp.ago('16 days'),
     pg_temp.ago('1 year')),
    ('00000000-0000-4000-8000-000000000003', 'Southern Vines', 'starter', 'Pacific/Auckland',
     '{"digest": {"enabled": true, "schedule": "daily", "time": "15:00"}}',
     pg_temp.ago('3 days 30 minutes'), 'cus_vines', 'trialing', pg_temp.ago('50 hours'), NULL, NULL,
     pg_temp.ago('3 months')),
    ('00000000-0000-4000-8000-000000000004', 'Mars Rovers', 'starter', 'Mars/Olympus_Mons',
     '{"digest": {"enabled": true, "schedule": "daily", "time": "09:00"}}',
     pg_temp.ago('1 hour'), 'cus_mars', 'active', pg_temp.ago('26 hours'), NULL, NULL, pg_temp.ago('3 months')),
    ('00000000-0000-4000-8000-000000000005', 'Late Payers', 'starter', 'Europe/Lisbon', '{}',
     NULL, 'cus_late', 'past_due', pg_temp.ago('26 hours'), pg_temp.ago('9 days'), NULL, pg_temp.ago('1 year')),
    ('00000000-0000-4000-8000-000000000006', 'Old Mill', 'starter', 'Europe/Lisbon', '{}',
     NULL, 'cus_nobody', 'active', pg_temp.ago('26 hours'), NULL, NULL, pg_temp.ago('1 year')),
    ('00000000-0000-4000-8000-000000000007', 'Corner Shop', 'starter', 'America/Sao_Paulo', '{}',
     NULL, NULL, NULL, NULL, NULL, NULL, pg_temp.ago('3 hours')),
    -- Nothing to do: compared this very night, within its plan, nothing due.
    ('00000000-0000-4000-8000-000000000008', 'Quiet Harbour', 'starter', 'Asia/Kolkata',
     '{"digest": {"enabled": true, "schedule": "daily", "time": "18:00"}}',
     pg_temp.ago('-10 hours'), 'cus_quiet', 'active', pg_temp.ago('2 hours'), NULL, NULL, pg_temp.ago('1 year'));

-- Deleted six weeks ago, and last week.
INSERT INTO forecasts.organizations (id, name, plan, created_at, deleted_at)
VALUES
    ('00000000-0000-4000-8000-000000000009', 'Gone For Good', 'starter', pg_temp.ago('1 year'), pg_temp.ago('42 days')),
    ('00000000-0000-4000-8000-000000000010', 'Just Gone', 'starter', pg_temp.ago('1 year'), pg_temp.ago('7 days'));

-- Events that ended an hour and a half ago, and one that ended an hour less ago.
INSERT INTO forecasts.watchpoints (organization_id, name, tile_id, time_window_end, created_at)
SELECT '00000000-0000-4000-8000-000000000001', 'hut ' || number, 'tile-' || number,
    pg_temp.ago(CASE WHEN number < 4 THEN interval '90 minutes' ELSE interval '45 minutes' END), pg_temp.ago('20 days')
FROM generate_series(1, 4) AS number;

-- Seven where the plan has five; and two of an organisation that has not paid.
INSERT INTO forecasts.watchpoints (organization_id, name, tile_id, created_at)
SELECT '00000000-0000-4000-8000-000000000002', 'berth ' || number, 'tile-7', pg_temp.ago('30 days') + number * interval '1 day'
FROM generate_series(1, 7) AS number;
INSERT INTO forecasts.watchpoints (organization_id, name, tile_id, created_at)
SELECT '00000000-0000-4000-8000-000000000005', 'field ' || number, 'tile-8', pg_temp.ago('60 days')
FROM generate_series(1, 2) AS number;

-- One canary that is triggered as it should be, and one that should be and is not.
INSERT INTO forecasts.watchpoints (organization_id, name, tile_id, is_triggered, metadata, created_at)
VALUES
    ('00000000-0000-4000-8000-000000000008', 'canary that agrees', 'tile-1', true,
     '{"system_role": "canary", "expected_triggered": true}', pg_temp.ago('1 year')),
    ('00000000-0000-4000-8000-000000000008', 'canary that disagrees', 'tile-2', false,
     '{"system_role": "canary", "expected_triggered": true}', pg_temp.ago('1 year'));

-- Archived four months ago.
INSERT INTO forecasts.watchpoints
    (organization_id, name, tile_id, status, archived_at, archived_reason, time_window_end, created_at)
SELECT '00000000-0000-4000-8000-000000000001', 'last summer ' || number, 'tile-3', 'archived', pg_temp.ago('120 days'),
    'event_passed', pg_temp.ago('121 days'), pg_temp.ago('200 days')
FROM generate_series(1, 3) AS number;

-- Notifications that quiet hours have held back: three of Alpine Huts' go out, and Harbour Pilots' waits, since its
-- quiet hours have just begun. Four are older than notifications are kept.
WITH told AS (
    INSERT INTO forecasts.notifications (organization_id, payload, created_at)
    SELECT organization_id::uuid, jsonb_build_object('text', text, 'number', number), created_at
    FROM (
        VALUES
            ('00000000-0000-4000-8000-000000000001', 'snow above 1800 m', 3, pg_temp.ago('4 hours')),
            ('00000000-0000-4000-8000-000000000002', 'gusts of 50 knots', 1, pg_temp.ago('1 hour')),
            ('00000000-0000-4000-8000-000000000008', 'rain, long ago', 4, pg_temp.ago('100 days'))
    ) AS texts (organization_id, text, many, created_at)
    CROSS JOIN LATERAL generate_series(1, many) AS number
    RETURNING id, created_at
)
INSERT INTO forecasts.notification_deliveries (notification_id, channel, status, next_retry_at, created_at)
SELECT id, 'email',
    CASE WHEN created_at > pg_temp.ago('1 day') THEN 'deferred' ELSE 'sent' END,
    CASE WHEN created_at > pg_temp.ago('1 day') THEN pg_temp.ago('15 minutes') END,
    created_at
FROM told;

-- Forecast runs. Of those in progress, one hangs, RunPod has lost one, one is done without our row knowing it, one has
-- failed for the fourth time, and one began just now.
INSERT INTO forecasts.forecast_runs
    (model, run_timestamp, status, external_id, retry_count, storage_prefix, started_at, completed_at, created_at)
SELECT model, run_timestamp, status, external_id, retries, prefix, started_at,
    CASE status WHEN 'complete' THEN started_at + interval '40 minutes' END, started_at
FROM (
    VALUES
        ('medium_range', pg_temp.ago('20 hours 30 minutes'), 'running', 'job-hung', 0, NULL, pg_temp.ago('7 hours')),
        ('medium_range', pg_temp.ago('14 hours 30 minutes'), 'complete', 'job-1', 0, 'medium_range/new/',
         pg_temp.ago('9 hours')),
        ('medium_range', pg_temp.ago('26 hours 30 minutes'), 'complete', 'job-2', 0, NULL, pg_temp.ago('21 hours')),
        ('medium_range', pg_temp.ago('32 hours 30 minutes'), 'complete', 'job-3', 0, NULL, pg_temp.ago('27 hours')),
        ('medium_range', pg_temp.ago('100 days'), 'complete', 'job-4', 0, 'medium_range/old/', pg_temp.ago('100 days')),
        ('nowcast', pg_temp.ago('80 minutes'), 'running', 'job-lost', 0, NULL, pg_temp.ago('75 minutes')),
        ('nowcast', pg_temp.ago('70 minutes'), 'running', 'job-done', 1, NULL, pg_temp.ago('65 minutes')),
        ('nowcast', pg_temp.ago('60 minutes'), 'running', 'job-failed', 3, NULL, pg_temp.ago('55 minutes')),
        ('nowcast', pg_temp.ago('40 minutes'), 'running', 'job-5', 0, NULL, pg_temp.ago('10 minutes')),
        ('nowcast', pg_temp.ago('30 hours'), 'complete', 'job-6', 0, 'nowcast/new/', pg_temp.ago('29 hours')),
        ('nowcast', pg_temp.ago('16 days'), 'complete', 'job-7', 0, 'nowcast/old/', pg_temp.ago('16 days'))
) AS runs (model, run_timestamp, status, external_id, retries, prefix, started_at);

-- Enough verification for two tiles, and too little for a third; their coefficients, and a change that waits for review.
INSERT INTO forecasts.verification_results (forecast_run_id, tile_id, metric, value, sample_count, created_at)
SELECT id, tile, 'bias', 0.1 * number, samples, pg_temp.ago('3 days') + number * interval '1 hour'
FROM forecasts.forecast_runs
CROSS JOIN (VALUES ('tile-1', 60), ('tile-2', 80), ('tile-3', 5)) AS tiles (tile, samples)
CROSS JOIN generate_series(1, 3) AS number
WHERE external_id = 'job-7';
INSERT INTO forecasts.calibration_coefficients (tile_id, coefficients, updated_at)
VALUES
    ('tile-1', '{"scale": 1.0, "offset": 0.0}', pg_temp.ago('8 days')),
    ('tile-2', '{"scale": 0.9, "offset": 0.2}', pg_temp.ago('8 days'));
INSERT INTO forecasts.calibration_candidates (tile_id, proposed, violation_reason, created_at)
VALUES ('tile-2', '{"scale": 1.2, "offset": 0.2}', 'scale changes by 33 %, beyond 15 %', pg_temp.ago('8 days'));

-- Yesterday's usage, not filed yet; and that of an organisation which calls today.
INSERT INTO forecasts.rate_limits
    (organization_id, source, api_calls_count, watchpoints_count, period_start, period_end)
SELECT organization_id::uuid, source, calls, watchpoints, day_start, day_start + interval '1 day'
FROM (
    VALUES
        ('00000000-0000-4000-8000-000000000001', 'api', 4210, 4, interval '1 day'),
        ('00000000-0000-4000-8000-000000000001', 'dashboard', 118, 0, interval '1 day'),
        ('00000000-0000-4000-8000-000000000002', 'api', 870, 7, interval '1 day'),
        ('00000000-0000-4000-8000-000000000003', 'api', 12, 0, interval '1 day'),
        ('00000000-0000-4000-8000-000000000008', 'api', 3, 2, interval '0')
) AS counts (organization_id, source, calls, watchpoints, days)
CROSS JOIN LATERAL (
    SELECT date_trunc('day', pg_temp.ago(days), 'UTC') AS day_start
) AS began;

-- Rows that only have to go: expired keys, old security events, unaccepted invites, audit records of more than a year
-- ago, which are stored first. Of each, some stay.
INSERT INTO forecasts.idempotency_keys (key, organization_id, response, created_at, expires_at)
SELECT 'key-' || number, '00000000-0000-4000-8000-000000000001', '{}', pg_temp.ago('2 days'),
    pg_temp.ago(CASE WHEN number <= 40 THEN interval '1 day' ELSE interval '-1 hour' END)
FROM generate_series(1, 45) AS number;
INSERT INTO forecasts.security_events (kind, source_ip, attempted_at)
SELECT 'login_failed', '192.0.2.1', pg_temp.ago(CASE WHEN number <= 30 THEN interval '8 days' ELSE interval '1 hour' END)
FROM generate_series(1, 35) AS number;
INSERT INTO forecasts.invites (organization_id, email, expires_at, accepted_at)
VALUES
    ('00000000-0000-4000-8000-000000000001', 'guide@example.com', pg_temp.ago('40 days'), NULL),
    ('00000000-0000-4000-8000-000000000001', 'cook@example.com', pg_temp.ago('40 days'), pg_temp.ago('45 days')),
    ('00000000-0000-4000-8000-000000000002', 'pilot@example.com', pg_temp.ago('-3 days'), NULL);
INSERT INTO forecasts.audit_logs (organization_id, actor, action, entity_type, entity_id, created_at)
SELECT '00000000-0000-4000-8000-000000000001', 'warden', 'watchpoint.created', 'watchpoint', number::text,
    pg_temp.ago(CASE WHEN number <= 25 THEN interval '400 days' ELSE interval '20 days' END)
FROM generate_series(1, 30) AS number;
