-- find_job: return the first three ids of jobs in a range; short ids are ranges of the primary key
SELECT id::text FROM signalbox.jobs WHERE id BETWEEN %(first)s::uuid AND %(last)s::uuid ORDER BY id LIMIT 3;

-- find_dead_letter: return the first three ids of dead letters in a range
SELECT id::text FROM signalbox.dead_letter_jobs
WHERE id BETWEEN %(first)s::uuid AND %(last)s::uuid ORDER BY id LIMIT 3;

-- find_backfill: return the first three ids of backfills in a range
SELECT id::text FROM signalbox.backfills WHERE id BETWEEN %(first)s::uuid AND %(last)s::uuid ORDER BY id LIMIT 3;
