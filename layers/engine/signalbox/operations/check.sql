-- describe_server: its version, the database's name, and what ends the work of a worker that vanished
SELECT current_setting('server_version'), current_database(), current_setting('statement_timeout'),
    current_setting('idle_in_transaction_session_timeout');

-- count_locks: leases at work, and leases that nobody gave back
SELECT count(*) FILTER (WHERE expires_at > clock_timestamp()), count(*) FILTER (WHERE expires_at <= clock_timestamp())
FROM signalbox.job_locks;

-- count_runs: what is at work, and what went wrong in the last day
SELECT count(*) FILTER (WHERE status = 'running'), count(*) FILTER (WHERE status = 'failed'),
    count(*) FILTER (WHERE status = 'missed')
FROM signalbox.job_history
WHERE status = 'running' OR (started_at > now() - interval '1 day' AND status IN ('failed', 'missed'));
