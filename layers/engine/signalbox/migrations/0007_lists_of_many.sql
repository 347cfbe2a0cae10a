-- serves: 1
-- Indexes by which operators' lists read no more than they show, among a million jobs and ten million runs.

-- Pages of a group, of a parent's children and of a key, newest first. The first two replace indexes without the id.
-- From its submit to its end, a job writes 64 bytes of WAL more for a group, 68 for a parent and 272 for a key.
CREATE INDEX IF NOT EXISTS jobs_of_group_by_id ON signalbox.jobs (job_group, id) WHERE job_group IS NOT NULL;
CREATE INDEX IF NOT EXISTS jobs_of_parent_by_id ON signalbox.jobs (parent_job_id, id) WHERE parent_job_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS jobs_of_cap_key ON signalbox.jobs (cap_key, id) WHERE cap_key IS NOT NULL;
DROP INDEX signalbox.jobs_of_group;
DROP INDEX signalbox.jobs_of_parent;
-- Skips the parts of the table without a job of the type or lane: few have a rare one, none has one that is misspelt. A
-- B-tree would write 300 bytes of WAL for each job, a fifth more, as its row is written three times; this writes none.
CREATE INDEX IF NOT EXISTS jobs_by_kind ON signalbox.jobs
    USING brin (job_type text_bloom_ops, lane text_bloom_ops) WITH (pages_per_range = 64, autosummarize = on);

-- Pages of a task's runs, and of the runs that are not as usual. A run writes two entries of the first index.
CREATE INDEX IF NOT EXISTS runs_by_id ON signalbox.job_history (job_type, id);
CREATE INDEX IF NOT EXISTS runs_by_status ON signalbox.job_history (status, id) WHERE status <> 'succeeded';
CREATE INDEX IF NOT EXISTS runs_by_trigger ON signalbox.job_history (trigger, id) WHERE trigger <> 'schedule';

-- Pages of dead letters in any state, the newest failure first. Only a job that fails for good writes it.
CREATE INDEX IF NOT EXISTS dead_letters_by_time ON signalbox.dead_letter_jobs (last_failed_at, id);
