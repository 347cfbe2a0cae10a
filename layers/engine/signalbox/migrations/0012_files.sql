-- serves: 1
-- What is known of the files that jobs have written.

CREATE TABLE signalbox.job_files (
    job_id uuid NOT NULL REFERENCES signalbox.jobs ON DELETE CASCADE,
    key text NOT NULL,
    sha256 text NOT NULL,
    bytes bigint NOT NULL,
    content_type text NOT NULL,
    kept_until timestamptz,
    written_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, key)
);
COMMENT ON TABLE signalbox.job_files IS 'What jobs said of the files that they have written; jobs.output_files has the names of all.';
COMMENT ON COLUMN signalbox.job_files.kept_until IS 'When the job said that a rule of its bucket deletes it; null: never.';
