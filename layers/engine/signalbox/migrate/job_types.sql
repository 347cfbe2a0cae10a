-- keep: store the job types of these packs as they are now
INSERT INTO signalbox.job_types AS known (
    name, pack, summary, version, category, lane, lanes, max_attempts, timeout_ms, cap, subject, correlation,
    payload_schema, has_validators, on_dead_letter
)
SELECT name, pack, summary, version, category, lane, lanes, max_attempts, timeout_ms, cap, subject, correlation,
    payload_schema, has_validators, on_dead_letter
FROM jsonb_to_recordset(%(types)s::jsonb) AS given (
    name text, pack text, summary text, version smallint, category text, lane text, lanes text[], max_attempts smallint,
    timeout_ms integer, cap jsonb, subject text, correlation text, payload_schema jsonb, has_validators boolean,
    on_dead_letter text
)
ON CONFLICT (name) DO UPDATE
SET pack = excluded.pack, summary = excluded.summary, version = excluded.version, category = excluded.category,
    lane = excluded.lane, lanes = excluded.lanes, max_attempts = excluded.max_attempts, timeout_ms = excluded.timeout_ms,
    cap = excluded.cap, subject = excluded.subject, correlation = excluded.correlation,
    payload_schema = excluded.payload_schema, has_validators = excluded.has_validators,
    on_dead_letter = excluded.on_dead_letter, updated_at = now()
WHERE (known.*) IS DISTINCT FROM (excluded.name, excluded.pack, excluded.summary, excluded.version, excluded.category,
    excluded.lane, excluded.lanes, excluded.max_attempts, excluded.timeout_ms, excluded.cap, excluded.subject,
    excluded.correlation, excluded.payload_schema, excluded.has_validators, known.updated_at, excluded.on_dead_letter);

-- forget: delete types that these packs no longer have; `newer` packs, which have newer code, keep theirs
DELETE FROM signalbox.job_types WHERE name <> ALL (%(names)s) AND pack <> ALL (%(newer)s);

-- find_hooks_amiss: return the types whose function for dead letters is none
SELECT name, on_dead_letter FROM signalbox.job_types
WHERE on_dead_letter IS NOT NULL
    AND (on_dead_letter !~ '^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$'
        OR to_regprocedure(on_dead_letter || '(uuid, jsonb, text, jsonb)') IS NULL)
ORDER BY name;
