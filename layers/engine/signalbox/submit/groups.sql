-- show: return how far a group is
SELECT id, total, completed, failed, cancelled, sealed, completion_job_id::text, created_at, finished_at
FROM signalbox.job_groups WHERE id = %(id)s;

-- join: count the jobs that this transaction has submitted
SELECT signalbox.finish_submits();

-- wait_for_group: let the job wait for its group too
UPDATE signalbox.jobs
SET status = CASE WHEN status = 'queued' THEN 'pending' ELSE status END, unmet_dependencies = unmet_dependencies + 1,
    send_at = NULL, held_by = NULL, queued_at = NULL
WHERE id = %(job_id)s AND status IN ('queued', 'pending');

-- seal: seal the group, unless that has been done
INSERT INTO signalbox.job_groups AS known (id, sealed, completion_job_id) VALUES (%(id)s, true, %(completion)s)
ON CONFLICT (id) DO UPDATE SET sealed = true, completion_job_id = excluded.completion_job_id WHERE NOT known.sealed
RETURNING id;

-- finish: finish the group if all of its jobs have ended; return the completion job if it may be sent
SELECT signalbox.finish_group(%(id)s)::text;
