-- serves: 2
-- A job's row is written three or four times, and so are its entries in the indexes of what waits. By autovacuum's
-- default a fifth of a partition, which is a week of jobs, would be dead before anybody vacuums it: 2 % keeps that to what
-- claims and dispatches read past in a moment.

DO $$
DECLARE
    part regclass;
BEGIN
    FOR part IN
        SELECT i.inhrelid::regclass FROM pg_catalog.pg_inherits AS i
        WHERE i.inhparent IN ('signalbox.jobs'::regclass, 'signalbox.job_executions'::regclass)
    LOOP
        -- The default ones among them, whose options new partitions take. Nobody who reads or writes waits for this lock.
        EXECUTE format(
            'ALTER TABLE %s SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, '
            'autovacuum_analyze_scale_factor = 0.05)', part
        );
    END LOOP;
END $$;
