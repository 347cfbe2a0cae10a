-- read_wait: return what a job that waited for a signal has received
SELECT ended_by, payload FROM signalbox.read_wait(%(job)s, %(token)s);

-- find_step: return the answer of a step
SELECT answer FROM signalbox.job_steps WHERE job_id = %(job)s AND name = %(name)s;

-- find_steps: return the answers of all steps whose names begin so
SELECT answer FROM signalbox.job_steps WHERE job_id = %(job)s AND starts_with(name, %(prefix)s) ORDER BY name;

-- keep_step: keep the answer of a step, unless another worker has the job by now
INSERT INTO signalbox.job_steps (job_id, name, answer, lease_token)
SELECT j.id, %(name)s, %(answer)s, j.lease_token FROM signalbox.jobs AS j
WHERE j.id = %(job)s AND j.lease_token = %(token)s
ON CONFLICT (job_id, name) DO NOTHING
RETURNING answer;
