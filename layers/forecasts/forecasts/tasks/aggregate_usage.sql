-- file_ended: file one page of the periods that have ended, and begin new ones in the same statement
-- The lock comes first, and a locked row is read as it then is: what is filed is what is set to zero, and calls counted
-- meanwhile wait for the commit and count for the new period. SKIP LOCKED: a row that the API is counting in is left
-- for the next look, so that no page waits while it holds a thousand locks; and two runs share the work.
WITH ended AS (
    SELECT organization_id, source, api_calls_count, watchpoints_count, period_start, period_end
    FROM forecasts.rate_limits
    WHERE period_end < %(now)s
        AND (period_end, organization_id, source) > (%(after_end)s, %(after_id)s, %(after_source)s)
    ORDER BY period_end, organization_id, source
    LIMIT %(size)s
    FOR NO KEY UPDATE SKIP LOCKED
), filed AS (
    INSERT INTO forecasts.usage_history AS known (organization_id, date, source, api_calls, watchpoints, notifications)
    SELECT organization_id, (period_start AT TIME ZONE 'UTC')::date, source, api_calls_count, watchpoints_count, 0
    FROM ended
    ON CONFLICT (organization_id, date, source) DO UPDATE
    SET api_calls = known.api_calls + excluded.api_calls, watchpoints = greatest(known.watchpoints, excluded.watchpoints)
), reset AS (
    UPDATE forecasts.rate_limits AS rate_limit
    SET api_calls_count = 0, watchpoints_count = 0, period_start = %(today)s, period_end = %(tomorrow)s
    FROM ended
    WHERE rate_limit.organization_id = ended.organization_id AND rate_limit.source = ended.source
)
SELECT count(*) OVER (), period_end, organization_id::text, source
FROM ended
ORDER BY period_end DESC, ended.organization_id DESC, source DESC
LIMIT 1;

-- count_ended: count periods that have ended and are not filed
SELECT count(*) FROM forecasts.rate_limits WHERE period_end < %(now)s;

-- end_overages: end the overage of one batch of organisations whose usage of the day before is within their plan
-- Not those with a period still to be filed, whose day is not known yet; nor those whose overage began after that
-- day. The gauge starts each day at zero and an idle day leaves it there: so active watchpoints count too.
UPDATE forecasts.organizations SET overage_started_at = NULL
WHERE id IN (
    SELECT organization.id
    FROM forecasts.organizations AS organization
    JOIN forecasts.plan_limits AS plan_limit ON plan_limit.plan = organization.plan
    WHERE organization.overage_started_at < %(today)s AND organization.deleted_at IS NULL
        AND NOT EXISTS (
            SELECT FROM forecasts.rate_limits AS rate_limit
            WHERE rate_limit.organization_id = organization.id AND rate_limit.period_end < %(now)s
        )
        AND (
            SELECT coalesce(sum(api_calls), 0) <= plan_limit.api_calls_per_day
                AND coalesce(sum(watchpoints), 0) <= plan_limit.watchpoints
            FROM forecasts.usage_history AS usage
            WHERE usage.organization_id = organization.id AND usage.date = %(yesterday)s
        )
        AND (
            SELECT count(*) <= plan_limit.watchpoints FROM forecasts.watchpoints AS watchpoint
            WHERE watchpoint.organization_id = organization.id AND watchpoint.status = 'active'
        )
    LIMIT %(size)s
    FOR NO KEY UPDATE OF organization SKIP LOCKED
)
RETURNING id::text;
