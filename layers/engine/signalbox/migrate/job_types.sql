-- keep: store the job types of these packs as they are now
INSERT INTO signalbox.job_types AS known (
    name, pack, summary, version, category, lane, lanes, max_attempts, timeout_ms, cap, subject, correlation,
    payload_schema, has_validators
)
SELECT name, pack, summary, version, category, lane, lanes, max_attempts, timeout_ms, cap, subject, correlation,
    payload_schema, has_validators
FROM jsonb_to_recordset(%(types)s::jsonb) AS given (
    name text, pack text, summary text, version smallint, category text, lane text, lanes text[], max_attempts smallint,
    timeout_ms integer, cap jsonb, subject text, correlation text, payload_schema jsonb, has_validators boolean
)
ON CONFLICT (name) DO UPDATE
SET pack = excluded.pack, summary = excluded.summary, version = excluded.version, category = excluded.category,
    lane = excluded.lane, lanes = excluded.lanes, max_attempts = excluded.max_attempts, timeout_ms = excluded.timeout_ms,
    cap = excluded.cap, subject = excluded.subject, correlation = excluded.correlation,
    payload_schema = excluded.payload_schema, has_validators = excluded.has_validators, updated_at = now()
WHERE (known.*) IS DISTINCT FROM (excluded.name, excluded.pack, excluded.summary, excluded.version, excluded.category,
    excluded.lane, excluded.lanes, excluded.max_attempts, excluded.timeout_ms, excluded.cap, excluded.subject,
    excluded.correlation, excluded.payload_schema, excluded.has_validators, known.updated_at);

-- keep_options: store what else is known of them
INSERT INTO signalbox.job_type_options AS known (name, on_dead_letter, route, tags, job_name)
SELECT name, on_dead_letter, route, tags, job_name FROM jsonb_to_recordset(%(types)s::jsonb) AS given (
    name text, on_dead_letter text, route jsonb, tags jsonb, job_name text
)
ON CONFLICT (name) DO UPDATE
SET on_dead_letter = excluded.on_dead_letter, route = excluded.route, tags = excluded.tags, job_name = excluded.job_name;

-- forget: delete types that these packs no longer have; `newer` packs, which have newer code, keep theirs
DELETE FROM signalbox.job_types WHERE name <> ALL (%(names)s) AND pack <> ALL (%(newer)s);

-- find_hooks_amiss: return the types whose function for dead letters is none
SELECT name, on_dead_letter FROM signalbox.job_type_options
WHERE on_dead_letter IS NOT NULL
    AND (on_dead_letter !~ '^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$'
        OR to_regprocedure(on_dead_letter || '(uuid, jsonb, text, jsonb)') IS NULL)
ORDER BY name;

-- keep_names: store the other names of job types, and names that none may have
WITH given AS (
    SELECT * FROM jsonb_to_recordset(%(given)s::jsonb) AS g (name text, pack text, job_type text, reason text)
), gone AS (
    DELETE FROM signalbox.job_type_names AS n
    WHERE n.pack <> ALL (%(newer)s) AND NOT EXISTS (SELECT FROM given WHERE given.name = n.name)
)
INSERT INTO signalbox.job_type_names (name, pack, job_type, reason) SELECT name, pack, job_type, reason FROM given
ON CONFLICT (name) DO UPDATE SET pack = excluded.pack, job_type = excluded.job_type, reason = excluded.reason;
