-- serves: 1
-- What running jobs note of where they are, for the dead letter of one whose worker is lost.

CREATE TABLE signalbox.job_notes (
    job_id uuid PRIMARY KEY REFERENCES signalbox.jobs ON DELETE CASCADE,
    lease_token uuid NOT NULL,
    notes jsonb NOT NULL
);
COMMENT ON TABLE signalbox.job_notes IS
    'What a job has noted in an attempt, as of its last heartbeat; the next attempt that notes something replaces it.';
