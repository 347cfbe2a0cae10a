-- take_turn: one transaction at a time adds dependencies to stored jobs; answers how well it sees what the others did
-- Two of them could close a circle of which each sees the half.
SELECT current_setting('transaction_isolation')
FROM (SELECT pg_advisory_xact_lock(hashtextextended('signalbox.job_dependencies', 0)) OFFSET 0) AS turn;

-- hold_parent: it can't end before this transaction does, else nobody would release the job
SELECT 1 FROM signalbox.jobs WHERE id = %(parent)s FOR SHARE;

-- hold_job: nor can the job begin
SELECT status FROM signalbox.jobs WHERE id = %(job_id)s FOR NO KEY UPDATE;

-- find: how the one depends on the other already
SELECT dependency_type, on_failure FROM signalbox.job_dependencies
WHERE job_id = %(job_id)s AND depends_on_job_id = %(parent)s;

-- waits_for: does a job wait for another one, whether at once or through others?
WITH RECURSIVE awaited (id) AS (
    SELECT %(job_id)s::uuid
    UNION
    SELECT d.depends_on_job_id FROM awaited AS w
    JOIN signalbox.job_dependencies AS d ON d.job_id = w.id AND NOT d.satisfied
)
SELECT EXISTS (SELECT FROM awaited WHERE id = %(other)s);

-- insert: the dependency, and the job that is one further from its turn
WITH added AS (
    INSERT INTO signalbox.job_dependencies (job_id, depends_on_job_id, dependency_type, on_failure)
    VALUES (%(job_id)s, %(parent)s, %(type)s, %(on_failure)s)
)
UPDATE signalbox.jobs
SET unmet_dependencies = unmet_dependencies + 1, send_at = NULL, updated_at = clock_timestamp()
WHERE id = %(job_id)s;

-- settle: a parent that has ended already; answers what was released, cancelled or failed by that
SELECT unnest(signalbox.settle_jobs(ARRAY(
    SELECT id FROM signalbox.jobs WHERE id = %(parent)s AND completed_at IS NOT NULL
), counted => true))::text;
