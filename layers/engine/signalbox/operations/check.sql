-- describe_server: return its version, the database's name, and the time-outs that end a vanished worker's work
SELECT current_setting('server_version'), current_database(), current_setting('statement_timeout'),
    current_setting('idle_in_transaction_session_timeout');

-- count_locks: count leases in use, and expired leases that were not given back
SELECT count(*) FILTER (WHERE expires_at > clock_timestamp()), count(*) FILTER (WHERE expires_at <= clock_timestamp())
FROM signalbox.job_locks;

-- count_runs: count the running runs, and those that failed or were missed in the last day
SELECT count(*) FILTER (WHERE status = 'running'), count(*) FILTER (WHERE status = 'failed'),
    count(*) FILTER (WHERE status = 'missed')
FROM signalbox.job_history
WHERE status = 'running' OR (started_at > now() - interval '1 day' AND status IN ('failed', 'missed'));
