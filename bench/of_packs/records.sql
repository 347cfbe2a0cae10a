-- fill: upload so many files of one patient
INSERT INTO records.shell_files (patient_id, raw_file, filename, mime_type)
SELECT %(patient)s, 'letter', 'letter.pdf', 'application/pdf' FROM generate_series(1, %(files)s)
RETURNING id::text;

-- next: return the jobs of a pass that are waiting, 0 for those that read the files
SELECT id::text FROM signalbox.jobs
WHERE completed_at IS NULL AND coalesce((payload ->> 'pass_number')::integer, 0) = %(pass)s ORDER BY id;

-- completed: count the files that were processed
SELECT count(*) FROM records.shell_files WHERE status = 'completed' AND raw_file = 'letter';

-- connections: count what others have open on this database
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
