-- list: return the partitions of a table that hold a period of time, the oldest first
SELECT name, starts_at, ends_at FROM signalbox.partitions WHERE of_table = %(table)s ORDER BY starts_at;

-- make: add the partitions that are missing
SELECT signalbox.make_partitions(%(table)s, %(days)s);

-- drop_job_executions: drop one partition of attempts
SELECT signalbox.drop_executions(%(which)s, %(before)s);

-- drop_job_history: drop one partition of the ledger
SELECT signalbox.drop_runs(%(which)s, %(retained)s::jsonb);
