-- count_new: count the dead letters that have not been reported
SELECT count(*) FROM signalbox.dead_letter_jobs WHERE status = 'pending' AND notified_at IS NULL;

-- list_new_kinds: return the oldest of these by kind, the most severe first, then the most frequent
SELECT severity, fingerprint, max(job_type) AS job_type,
    (array_agg(failure_reason ORDER BY last_failed_at DESC))[1] AS failure_reason,
    (array_agg(error_type ORDER BY last_failed_at DESC))[1] AS error_type,
    (array_agg(left(final_error_message, 200) ORDER BY last_failed_at DESC))[1] AS error_message,
    (array_agg(id::text ORDER BY last_failed_at DESC))[1] AS newest_id, array_agg(id::text) AS ids
FROM (
    SELECT * FROM signalbox.dead_letter_jobs WHERE status = 'pending' AND notified_at IS NULL
    ORDER BY last_failed_at LIMIT %(most)s
) AS untold
GROUP BY severity, fingerprint
ORDER BY array_position(ARRAY['critical', 'warning', 'info'], severity), count(*) DESC, fingerprint;

-- mark: mark these as reported, including those that have been triaged in the meantime
UPDATE signalbox.dead_letter_jobs SET notified_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE id = ANY (%(ids)s::uuid[]);
