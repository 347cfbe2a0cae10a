-- look: return whether the three groups exist, and whether this log-in has the owner's rights as its own
SELECT count(*) = 3, coalesce(bool_or(pg_has_role(oid, 'USAGE')) FILTER (WHERE rolname = 'signalbox_owner'), false)
FROM pg_roles WHERE rolname IN ('signalbox_owner', 'signalbox_writer', 'signalbox_reader');

-- make_groups: make the missing groups, and make this log-in a member of the owner
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['signalbox_owner', 'signalbox_writer', 'signalbox_reader'] LOOP
        BEGIN
            IF to_regrole(wanted) IS NULL THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- roles belong to the cluster: another database's migrator was faster
        END;
    END LOOP;
    IF NOT pg_has_role('signalbox_owner', 'USAGE') THEN
        EXECUTE format('GRANT signalbox_owner TO %I', current_user);
    END IF;
END
$$;

-- apply_grants: give each object of our schemas its owner and its grants, and change only what differs
DO $$
DECLARE
    rooms constant oid[] := ARRAY(
        SELECT oid FROM pg_namespace
        WHERE nspname IN (SELECT pack FROM signalbox.schema_migrations) OR nspname IN ('signalbox', 'signalbox_staging')
    );
    staging constant oid := to_regnamespace('signalbox_staging');
    private oid[] := '{}';  -- the reader may not read there
    statement text;
BEGIN
    IF to_regclass('signalbox.private_schemas') IS NOT NULL THEN
        private := ARRAY(SELECT oid FROM pg_namespace WHERE nspname IN (SELECT name FROM signalbox.private_schemas));
    END IF;
    -- The schemas come first: a table's new owner must be allowed to create in its schema. Objects of other owners, for
    -- whom this log-in can't act, are left alone.
    FOR statement IN
        SELECT format('ALTER SCHEMA %I OWNER TO signalbox_owner', nspname) FROM pg_namespace
        WHERE oid = ANY (rooms) AND nspowner <> 'signalbox_owner'::regrole AND pg_has_role(nspowner, 'USAGE')
    LOOP
        EXECUTE statement;
    END LOOP;
    -- Not in the staging schema: its tables belong to the jobs that use them. A sequence goes with its column.
    FOR statement IN
        SELECT format('ALTER %s %s OWNER TO signalbox_owner', k.kind, c.oid::regclass)
        FROM pg_class AS c
        JOIN (VALUES ('r', 'TABLE'), ('p', 'TABLE'), ('v', 'VIEW'), ('m', 'MATERIALIZED VIEW'), ('f', 'FOREIGN TABLE'),
            ('S', 'SEQUENCE')) AS k (relkind, kind) ON k.relkind = c.relkind::text
        WHERE c.relnamespace = ANY (rooms) AND c.relnamespace IS DISTINCT FROM staging
            AND c.relowner <> 'signalbox_owner'::regrole AND pg_has_role(c.relowner, 'USAGE')
            AND NOT EXISTS (
                SELECT FROM pg_depend AS d
                WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND c.relkind = 'S' AND d.deptype IN ('a', 'i')
            )
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO signalbox_owner', p.oid::regprocedure)
        FROM pg_proc AS p
        WHERE p.pronamespace = ANY (rooms) AND p.prokind IN ('f', 'p')
            AND p.proowner <> 'signalbox_owner'::regrole AND pg_has_role(p.proowner, 'USAGE')
    LOOP
        EXECUTE statement;
    END LOOP;
    FOR statement IN
        SELECT format('GRANT %s ON SCHEMA %I TO signalbox_%s', string_agg(w.privilege, ', '), n.nspname, w.who)
        FROM pg_namespace AS n
        JOIN (VALUES ('writer', 'USAGE', false), ('reader', 'USAGE', false), ('writer', 'USAGE', true),
            ('writer', 'CREATE', true)) AS w (who, privilege, in_staging)
            ON w.in_staging = (n.oid IS NOT DISTINCT FROM staging)
        WHERE n.oid = ANY (rooms) AND n.nspowner = 'signalbox_owner'::regrole
            AND NOT (w.who = 'reader' AND n.oid = ANY (private))
            AND NOT has_schema_privilege('signalbox_' || w.who, n.oid, w.privilege)
        GROUP BY n.nspname, w.who
        UNION ALL
        SELECT format('GRANT %s ON %s TO signalbox_%s', string_agg(w.privilege, ', '), c.oid::regclass, w.who)
        FROM pg_class AS c
        JOIN (VALUES ('reader', 'SELECT'), ('writer', 'SELECT'), ('writer', 'INSERT'), ('writer', 'UPDATE'),
            ('writer', 'DELETE')) AS w (who, privilege)
            -- Only the migrator writes the record of migrations, and views are only read.
            ON w.privilege = 'SELECT'
            OR (c.relkind IN ('r', 'p', 'f') AND c.oid <> 'signalbox.schema_migrations'::regclass)
        WHERE c.relnamespace = ANY (rooms) AND c.relnamespace IS DISTINCT FROM staging
            AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relowner = 'signalbox_owner'::regrole
            AND NOT (w.who = 'reader' AND c.relnamespace = ANY (private))
            AND NOT has_table_privilege('signalbox_' || w.who, c.oid, w.privilege)
        GROUP BY c.oid, w.who
        UNION ALL
        -- Default privileges make no difference between tables and views.
        SELECT format('REVOKE INSERT, UPDATE, DELETE ON %s FROM signalbox_writer', c.oid::regclass)
        FROM pg_class AS c
        WHERE c.relnamespace = ANY (rooms) AND c.relnamespace IS DISTINCT FROM staging
            AND (c.relkind IN ('v', 'm') OR c.oid = 'signalbox.schema_migrations'::regclass)
            AND c.relowner = 'signalbox_owner'::regrole
            AND has_table_privilege('signalbox_writer', c.oid, 'INSERT, UPDATE, DELETE')
        UNION ALL
        SELECT format('GRANT USAGE ON SEQUENCE %s TO signalbox_writer', c.oid::regclass)
        FROM pg_class AS c
        WHERE c.relnamespace = ANY (rooms) AND c.relkind = 'S' AND c.relowner = 'signalbox_owner'::regrole
            AND CASE WHEN c.relkind = 'S' THEN NOT has_sequence_privilege('signalbox_writer', c.oid, 'USAGE') END
        UNION ALL
        SELECT format('GRANT EXECUTE ON ROUTINE %s TO signalbox_writer', p.oid::regprocedure)
        FROM pg_proc AS p
        WHERE p.pronamespace = ANY (rooms) AND p.prokind IN ('f', 'p') AND p.proowner = 'signalbox_owner'::regrole
            -- A grant of its own, not through PUBLIC, which is about to lose it.
            AND NOT EXISTS (SELECT FROM aclexplode(p.proacl) WHERE grantee = 'signalbox_writer'::regrole)
        UNION ALL
        -- Otherwise every log-in may call it, with the owner's rights where it is SECURITY DEFINER.
        SELECT format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC', p.oid::regprocedure)
        FROM pg_proc AS p
        WHERE p.pronamespace = ANY (rooms) AND p.prokind IN ('f', 'p') AND p.proowner = 'signalbox_owner'::regrole
            AND has_function_privilege('public', p.oid, 'EXECUTE')
    LOOP
        EXECUTE statement;
    END LOOP;
    -- For what the owner's functions create later, such as partitions.
    FOR statement IN
        SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE signalbox_owner IN SCHEMA %I GRANT %s', n.nspname, g.what)
        FROM pg_namespace AS n
        CROSS JOIN (VALUES ('SELECT, INSERT, UPDATE, DELETE ON TABLES TO signalbox_writer'),
            ('SELECT ON TABLES TO signalbox_reader'), ('USAGE ON SEQUENCES TO signalbox_writer'),
            ('EXECUTE ON ROUTINES TO signalbox_writer')) AS g (what)
        WHERE n.oid = ANY (rooms) AND n.oid IS DISTINCT FROM staging
            AND NOT (g.what LIKE '%signalbox_reader' AND n.oid = ANY (private))
            AND NOT EXISTS (
            SELECT FROM pg_default_acl WHERE defaclrole = 'signalbox_owner'::regrole AND defaclnamespace = n.oid
        )
        UNION ALL
        SELECT 'ALTER DEFAULT PRIVILEGES FOR ROLE signalbox_owner REVOKE EXECUTE ON ROUTINES FROM PUBLIC'
        WHERE NOT EXISTS (
            SELECT FROM pg_default_acl WHERE defaclrole = 'signalbox_owner'::regrole AND defaclnamespace = 0
        )
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

-- become_owner: become the owner to the end of the transaction, so that what a migration makes belongs to it
ALTER SCHEMA {schema} OWNER TO signalbox_owner;
SET LOCAL ROLE signalbox_owner;

-- find_login: find a role of that name, and whether no secret may set its password: a group, or a powerful role
SELECT rolname = current_user OR rolsuper OR rolcreaterole OR NOT rolcanlogin FROM pg_roles WHERE rolname = %s;

-- create_login: make a log-in with no rights of its own
CREATE ROLE {login} LOGIN;

-- set_login: set its password and group, and the time-outs that end its work when its function has vanished
ALTER ROLE {login} PASSWORD {verifier};
ALTER ROLE {login} SET idle_in_transaction_session_timeout = '5min';
ALTER ROLE {login} SET statement_timeout = '15min';
GRANT {group} TO {login};

-- keep_reading: keep a reading log-in from writing, whatever else it is granted
ALTER ROLE {login} SET default_transaction_read_only = on;
