-- describe_server: its version and the database's name
SELECT current_setting('server_version'), current_database();

-- count_locks: leases at work, and leases that nobody gave back
SELECT count(*) FILTER (WHERE expires_at > clock_timestamp()), count(*) FILTER (WHERE expires_at <= clock_timestamp())
FROM signalbox.job_locks;

-- count_runs: what is at work, and what went wrong in the last day
SELECT count(*) FILTER (WHERE status = 'running'), count(*) FILTER (WHERE status = 'failed'),
    count(*) FILTER (WHERE status = 'missed')
FROM signalbox.job_history
WHERE status = 'running' OR (started_at > now() - interval '1 day' AND status IN ('failed', 'missed'));
