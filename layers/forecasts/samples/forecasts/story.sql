-- Each row is a line of what came of the sample data.
SELECT count(*) FILTER (WHERE status = 'running') || ' forecasts run from mirrors that answer, '
    || count(*) FILTER (WHERE failure_reason = 'Timeout') || ' that hung is given up' FROM forecasts.forecast_runs
UNION ALL
SELECT count(*) || ' organisations, over their limit or unpaid, lose watchpoints'
FROM forecasts.organizations WHERE overage_started_at IS NOT NULL OR payment_failed_at IS NOT NULL
UNION ALL
SELECT 'plans are as Stripe has them, but for ' || count(*) || ' that it does not show'
FROM forecasts.organizations WHERE billing_sync_failed_at IS NOT NULL;
