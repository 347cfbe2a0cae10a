-- list: return the job types by name
SELECT name, pack, summary, version, category, lane, lanes, max_attempts, timeout_ms, cap, has_validators
FROM signalbox.job_types ORDER BY name;

-- show: return one job type with the JSON schema of its payload
SELECT name, pack, summary, version, category, lane, lanes, max_attempts, timeout_ms, cap, subject, correlation,
    payload_schema, has_validators, updated_at
FROM signalbox.job_types WHERE name = %(name)s;
