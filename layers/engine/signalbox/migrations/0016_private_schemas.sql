-- serves: 1
-- Schemas with what only the product's own code may read, such as health data. A pack's migration adds its own.

CREATE TABLE signalbox.private_schemas (
    name text PRIMARY KEY,
    reason text NOT NULL
);
COMMENT ON TABLE signalbox.private_schemas IS 'Schemas that neither signalbox_reader nor export_table may read.';

COMMENT ON TABLE signalbox.job_schedules IS 'Schedules of jobs, each with when its next run is due; run_schedules submits them.';
