-- serves: 1
-- What a type makes of a payload, other names of types, and jobs that replace each other while they wait.

ALTER TABLE signalbox.job_type_options ADD COLUMN route jsonb, ADD COLUMN tags jsonb, ADD COLUMN job_name text,
    ADD COLUMN estimated_duration interval;
COMMENT ON COLUMN signalbox.job_type_options.route IS 'The field of the payload that decides on the lane, and the lanes and time-outs by its value.';
COMMENT ON COLUMN signalbox.job_type_options.tags IS 'By a tag''s first word, the field of the payload that follows it.';
COMMENT ON COLUMN signalbox.job_type_options.job_name IS 'The name of its jobs, with fields of the payload in braces.';

COMMENT ON COLUMN signalbox.job_type_options.estimated_duration IS 'The median of the last day''s attempts; roll_up_metrics measures it.';

CREATE TABLE signalbox.job_type_names (
    name text PRIMARY KEY,
    pack text NOT NULL,
    job_type text,
    reason text,
    CONSTRAINT name_of_type_or_none CHECK ((job_type IS NULL) <> (reason IS NULL))
);
COMMENT ON TABLE signalbox.job_type_names IS 'Other names of job types, and names that no type has, with the reason.';

ALTER TABLE signalbox.jobs ADD COLUMN replace_key text;
COMMENT ON COLUMN signalbox.jobs.replace_key IS 'Until the job begins, a submit with the same key replaces its payload.';
CREATE UNIQUE INDEX job_replaced_while_waiting ON signalbox.jobs (job_type, replace_key, coalesce(tenant, ''))
    WHERE replace_key IS NOT NULL AND executions = 0 AND status IN ('pending', 'queued', 'paused');

-- Return a field of a payload as text, or the default that its type has for it.
CREATE FUNCTION signalbox.payload_field(known signalbox.job_types, payload jsonb, field text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(payload ->> field, known.payload_schema #>> ARRAY['properties', field, 'default'])
$$;

CREATE OR REPLACE FUNCTION signalbox.submit_job(job_type text, payload jsonb DEFAULT '{}', options jsonb DEFAULT '{}')
RETURNS uuid LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    known signalbox.job_types;
    given record;
    fault text;
    in_lane text;
    due timestamptz;
    own_cap text;
    job uuid;
    own_id uuid := signalbox.new_id();
    names signalbox.job_type_names;
    own signalbox.job_type_options;
    routed text;
    part text;
    own_name text;
    known_options constant text[] := '{idempotency_key, priority, lane, delay_seconds, at, tenant, cap_key, group, parent_id,
        max_attempts, timeout_seconds, name, correlation_id, tags, metadata, created_by, category, replace_key}';
BEGIN
    SELECT * INTO names FROM signalbox.job_type_names AS n WHERE n.name = submit_job.job_type;
    IF names.reason IS NOT NULL THEN
        RAISE EXCEPTION 'there is no job type ''%'': %', names.name, names.reason USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO known FROM signalbox.job_types AS t WHERE t.name = coalesce(names.job_type, submit_job.job_type);
    IF known.name IS NULL THEN
        RAISE EXCEPTION 'job type ''%'' is not registered: the table signalbox.job_types lists those that are', submit_job.job_type
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF jsonb_typeof(options) <> 'object' THEN
        RAISE EXCEPTION 'options must be a JSON object' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO given FROM jsonb_to_record(options) AS o (
        idempotency_key text, priority smallint, lane text, delay_seconds float8, at timestamptz, tenant text, cap_key text,
        "group" text, parent_id uuid, max_attempts smallint, timeout_seconds float8, name text, correlation_id text,
        tags text[], metadata jsonb, created_by text, category text, replace_key text
    );
    given.priority := coalesce(given.priority, 5);
    SELECT * INTO own FROM signalbox.job_type_options AS o WHERE o.name = known.name;
    routed := signalbox.payload_field(known, payload, own.route ->> 'by');
    in_lane := coalesce(given.lane, own.route -> 'lanes' ->> routed, known.lane,
        CASE WHEN given.priority <= 3 THEN 'high' WHEN given.priority <= 7 THEN 'normal' ELSE 'low' END);
    due := coalesce(given.at, clock_timestamp() + given.delay_seconds * interval '1 s');
    fault := CASE
        WHEN options - known_options <> '{}' THEN format('there is no option ''%s''; there are %s',
            (SELECT min(o.name) FROM jsonb_object_keys(options - known_options) AS o (name)), array_to_string(known_options, ', '))
        WHEN given.priority NOT BETWEEN 1 AND 10 THEN format('priority %s is not between 1 (first) and 10', given.priority)
        WHEN given.category NOT IN ('critical', 'high_priority', 'standard', 'background', 'maintenance') THEN
            format('there is no category ''%s''', left(given.category, 50))
        WHEN own.job_name IS NOT NULL AND given.name IS NOT NULL THEN 'its type names it by the payload: give no name'
        WHEN given.correlation_id IS NOT NULL AND known.correlation IS NOT NULL THEN
            'its type takes its correlation_id from the payload: give none'
        WHEN given.replace_key IS NOT NULL AND 'id' IN (SELECT t.value FROM jsonb_each_text(own.tags) AS t) THEN
            'its type tags it with its id, which a replace_key would change: give none'
        WHEN given.replace_key IS NOT NULL AND num_nonnulls(given.idempotency_key, given."group") > 0 THEN
            'a replace_key goes with no idempotency_key or group: they would be another job''s'
        WHEN length(given.replace_key) NOT BETWEEN 1 AND 200 THEN 'its replace_key is not a text of 1 to 200 characters'
        WHEN own.route IS NOT NULL AND NOT own.route -> 'lanes' ? coalesce(routed, '') THEN
            format('no lane is for the %s ''%s''', own.route ->> 'by', left(routed, 50))
        WHEN in_lane <> coalesce(own.route -> 'lanes' ->> routed, in_lane) THEN
            format('lane ''%s'' contradicts the %s ''%s'', which is for lane ''%s''', in_lane, own.route ->> 'by', routed,
                own.route -> 'lanes' ->> routed)
        WHEN in_lane <> ALL (known.lanes) THEN
            format('it may not run in lane ''%s''; allowed are %s', in_lane, array_to_string(known.lanes, ', '))
        WHEN given.at IS NOT NULL AND given.delay_seconds IS NOT NULL THEN 'give delay_seconds or at, and not both'
        WHEN given.delay_seconds NOT BETWEEN 0 AND 31622400 THEN 'delay_seconds is not between 0 and a year'
        WHEN given.max_attempts NOT BETWEEN 1 AND 100 THEN format('max_attempts %s is not between 1 and 100', given.max_attempts)
        WHEN given.timeout_seconds <= 0 OR given.timeout_seconds > CASE in_lane WHEN 'heavy' THEN 870 ELSE 330 END THEN
            format('a time-out of %s s is not above zero and within the time of lane ''%s''', given.timeout_seconds, in_lane)
        WHEN octet_length(payload::text) > 200000 THEN
            'its payload has more than 200 kB; put the data into S3 and their key into the payload'
    END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'job of type ''%'': %', known.name, fault USING ERRCODE = 'invalid_parameter_value';
    END IF;
    fault := array_to_string(signalbox.schema_faults(known.payload_schema, payload), '; ');
    IF fault <> '' THEN
        RAISE EXCEPTION 'payload of job type ''%'' refused: %', known.name, fault USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- As the client writes them: `5E…` and `5e…` are one file.
    payload := payload || coalesce((
        SELECT jsonb_object_agg(f.key, lower(payload ->> f.key)) FROM jsonb_each(known.payload_schema -> 'properties') AS f
        WHERE (f.value ->> 'format' = 'uuid' OR f.value -> 'anyOf' @> '[{"format": "uuid"}]')
            AND jsonb_typeof(payload -> f.key) = 'string'
    ), '{}');
    -- If a cap counts by a value of the payload, only the type's own code can compute the key. dispatch_jobs does that
    -- before it sends the job.
    own_cap := CASE WHEN given.cap_key IS NULL AND known.cap ->> 'per' = 'tenant'
        THEN left(known.name || ' ' || coalesce(given.tenant, '-'), 200) END;
    own_name := coalesce(given.name, own.job_name);
    FOR part IN SELECT DISTINCT m[1] FROM regexp_matches(own.job_name, '\{(\w+)\}', 'g') AS m LOOP
        own_name := replace(own_name, '{' || part || '}', coalesce(signalbox.payload_field(known, payload, part), ''));
    END LOOP;
    given.tags := given.tags || ARRAY(
        SELECT t.key || ':' || v.value FROM jsonb_each_text(own.tags) AS t
        CROSS JOIN LATERAL (SELECT CASE t.value WHEN 'id' THEN own_id::text
            ELSE signalbox.payload_field(known, payload, t.value) END) AS v (value)
        WHERE v.value IS NOT NULL
    ) || CASE WHEN names.name IS NOT NULL THEN ARRAY['as:' || names.name] END;
    LOOP
        INSERT INTO signalbox.jobs (
            id, job_type, job_name, job_category, lane, priority, status, payload, payload_version, tenant, cap_key, subject_id,
            correlation_id, idempotency_key, job_group, parent_job_id, tags, metadata, created_by, max_attempts, timeout_ms,
            scheduled_for, send_at, replace_key, estimated_duration
        )
        VALUES (
            own_id, known.name, own_name, coalesce(given.category, known.category), in_lane, given.priority, 'pending', payload, known.version, given.tenant,
            coalesce(given.cap_key, own_cap), payload ->> known.subject,
            coalesce(given.correlation_id, payload ->> known.correlation), given.idempotency_key, given."group",
            given.parent_id, nullif(given.tags, '{}'), given.metadata, given.created_by,
            coalesce(given.max_attempts, known.max_attempts),
            coalesce(round(given.timeout_seconds * 1000), (own.route -> 'timeouts' ->> routed)::integer, known.timeout_ms),
            due, coalesce(due, clock_timestamp()), given.replace_key, own.estimated_duration
        )
        ON CONFLICT DO NOTHING
        RETURNING id INTO job;
        IF job IS NOT NULL THEN
            EXIT;
        END IF;
        SELECT j.id INTO job FROM signalbox.jobs AS j
        WHERE j.job_type = known.name AND j.idempotency_key = given.idempotency_key;
        IF job IS NOT NULL THEN
            RETURN job;
        END IF;
        UPDATE signalbox.jobs AS j
        SET payload = submit_job.payload, payload_version = known.version, subject_id = submit_job.payload ->> known.subject,
            correlation_id = coalesce(given.correlation_id, submit_job.payload ->> known.correlation), job_name = own_name,
            job_category = coalesce(given.category, known.category),
            lane = CASE WHEN j.status = 'queued' THEN j.lane ELSE in_lane END,
            cap_key = CASE WHEN j.held_by IS NULL THEN coalesce(given.cap_key, own_cap) ELSE j.cap_key END,
            timeout_ms = CASE WHEN j.status = 'queued' THEN j.timeout_ms ELSE coalesce(round(given.timeout_seconds * 1000),
                (own.route -> 'timeouts' ->> routed)::integer, known.timeout_ms) END,
            tags = nullif(given.tags, '{}'), metadata = given.metadata, created_by = given.created_by, updated_at = clock_timestamp(),
            scheduled_for = CASE WHEN j.status = 'queued' THEN j.scheduled_for ELSE coalesce(due, j.scheduled_for) END,
            send_at = CASE WHEN j.status = 'pending' AND j.send_at IS NOT NULL THEN coalesce(due, j.send_at) ELSE j.send_at END
        WHERE j.job_type = known.name AND j.replace_key = given.replace_key AND j.executions = 0
            AND coalesce(j.tenant, '') = coalesce(given.tenant, '')
            AND j.status IN ('pending', 'queued', 'paused')
        RETURNING j.id INTO job;
        IF job IS NOT NULL THEN
            RETURN job;
        END IF;  -- the first job has just been pruned or begun: the key is free
    END LOOP;
    IF given."group" IS NOT NULL OR known.cap ->> 'per' = 'type' OR own_cap IS NOT NULL THEN
        INSERT INTO signalbox.job_submits (parents, groups, caps) VALUES (
            '{}', CASE WHEN given."group" IS NULL THEN '{}' ELSE jsonb_build_object(given."group", 1) END,
            CASE WHEN known.cap ->> 'per' = 'type' OR own_cap IS NOT NULL THEN jsonb_build_array(
                known.cap || jsonb_build_object(
                    'kind', CASE WHEN own_cap IS NULL THEN 'type' ELSE 'key' END, 'key', coalesce(own_cap, known.name)
                )) ELSE '[]' END
        );
    END IF;
    RETURN job;
END $$;
