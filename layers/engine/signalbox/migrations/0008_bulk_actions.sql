-- serves: 1
-- What somebody asked to be done to all jobs or dead letters that a filter finds.

CREATE TABLE signalbox.bulk_actions (
    id uuid PRIMARY KEY DEFAULT signalbox.new_id(),
    action text NOT NULL,
    selection jsonb NOT NULL,
    tenant text GENERATED ALWAYS AS (selection ->> 'tenant') STORED,
    rate_per_minute integer,
    next_at timestamptz,
    cursor jsonb,
    leased_until timestamptz,
    status text NOT NULL DEFAULT 'running',
    counts jsonb NOT NULL DEFAULT '{}',
    refused jsonb NOT NULL DEFAULT '[]',
    requested_by text NOT NULL,
    reason text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    CONSTRAINT bulk_action_known CHECK (action IN ('cancel', 'retry', 'pause', 'resume', 'resume_target', 'redrive')),
    CONSTRAINT bulk_action_status_known CHECK (status IN ('running', 'cancelled', 'completed')),
    CONSTRAINT bulk_action_finished_iff_final CHECK ((status = 'running') = (finished_at IS NULL)),
    CONSTRAINT bulk_action_rate_positive CHECK (rate_per_minute > 0)
);
CREATE INDEX bulk_actions_running ON signalbox.bulk_actions (id) WHERE status = 'running';
CREATE INDEX bulk_actions_by_end ON signalbox.bulk_actions (finished_at);
COMMENT ON TABLE signalbox.bulk_actions IS 'Actions on all jobs or dead letters that a filter finds, with how far each is.';
COMMENT ON COLUMN signalbox.bulk_actions.selection IS 'The filter; with `until` it finds nothing that came later.';
COMMENT ON COLUMN signalbox.bulk_actions.next_at IS 'With a rate: when the next job may start.';
COMMENT ON COLUMN signalbox.bulk_actions.cursor IS 'Where the next batch begins.';
COMMENT ON COLUMN signalbox.bulk_actions.leased_until IS 'Until then a function is at work on it.';
COMMENT ON COLUMN signalbox.bulk_actions.refused IS 'The first ten that could not be changed, each with the reason.';
