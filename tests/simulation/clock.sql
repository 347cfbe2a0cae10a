-- Time and chance of the simulation, which its connection finds before those of pg_catalog.
CREATE SCHEMA sim;
CREATE FUNCTION sim.now() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT current_setting('sim.now')::timestamptz $$;
CREATE FUNCTION sim.transaction_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT sim.now() $$;
CREATE FUNCTION sim.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT sim.now() $$;
CREATE SEQUENCE sim.ids;
-- What the code of transactional jobs writes, once in each attempt that completes.
CREATE TABLE sim.effects (job_id uuid NOT NULL) WITH (autovacuum_enabled = off);
ALTER SEQUENCE sim.ids OWNED BY sim.effects.job_id;  -- TRUNCATE restarts it
CREATE FUNCTION sim.gen_random_uuid() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT lpad(to_hex(nextval('sim.ids')), 32, 'f')::uuid
$$;
SET sim.now = '2026-03-10 12:00+00';
SET jit = off;
SET statement_timeout = '30s';
-- Planning a statement again takes longer than to execute it on so few rows.
SET plan_cache_mode = force_generic_plan;
SET search_path = sim, pg_catalog, public;

-- A default keeps the function that it was made with.
DO $$
DECLARE
    column_ record;
BEGIN
    FOR column_ IN
        SELECT table_name, column_name, column_default FROM information_schema.columns
        WHERE table_schema = 'signalbox' AND column_default ~ '^pg_catalog\.(now|gen_random_uuid)\(\)$'
    LOOP
        EXECUTE format('ALTER TABLE signalbox.%I ALTER %I SET DEFAULT %s',
            column_.table_name, column_.column_name, replace(column_.column_default, 'pg_catalog', 'sim'));
    END LOOP;
END $$;
-- A plan must not follow from when somebody happened to analyze, nor from the day's partitions.
DO $$
DECLARE
    part text;
BEGIN
    FOR part IN
        SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_inherits AS i ON i.inhrelid = c.oid
        WHERE c.relkind = 'r' AND c.relname !~ '_default$' AND c.relnamespace = 'signalbox'::regnamespace
    LOOP
        EXECUTE 'DROP TABLE ' || part;
    END LOOP;
    FOR part IN
        SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'signalbox'::regnamespace
    LOOP
        EXECUTE 'ALTER TABLE ' || part || ' SET (autovacuum_enabled = off)';
    END LOOP;
END $$;
