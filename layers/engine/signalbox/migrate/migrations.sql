-- newest_versions: return how far each pack's schema is, and which code it still serves
SELECT pack, max(version), max(serves) FROM signalbox.schema_migrations GROUP BY pack;

-- list_applied: return every migration that this database has had, in order
SELECT pack, version, name, serves, checksum FROM signalbox.schema_migrations ORDER BY pack, version;

-- list_tables: return the tables in the engine's schema, when it has no record of migrations
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'signalbox' ORDER BY tablename;

-- set_lock_wait: set how long to wait for another migrator, in this transaction
SELECT set_config('lock_timeout', %s, true);

-- lock: let one migrator run at a time, by an advisory lock of our own
SELECT pg_advisory_xact_lock(hashtextextended('signalbox.migrations', 0));

-- create_record: make the record of migrations, which no migration can make for itself
CREATE SCHEMA IF NOT EXISTS signalbox;
CREATE TABLE IF NOT EXISTS signalbox.schema_migrations (
    pack text NOT NULL,
    version integer NOT NULL,
    name text NOT NULL,
    serves integer NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    applied_by text NOT NULL,
    PRIMARY KEY (pack, version)
);

-- create_schema: make a pack's own schema
CREATE SCHEMA IF NOT EXISTS {pack};

-- reset_role: return to the log-in, for statements that are not the migration's
RESET ROLE;

-- record: record that a migration was applied
INSERT INTO signalbox.schema_migrations (pack, version, name, serves, checksum, applied_by)
VALUES (%s, %s, %s, %s, %s, %s);

-- record_deploy: record a deploy that brings another version than the last one; CloudFormation may ask twice
INSERT INTO signalbox.deploys (version)
SELECT %(version)s WHERE %(version)s IS DISTINCT FROM (SELECT version FROM signalbox.deploys ORDER BY id DESC LIMIT 1);
