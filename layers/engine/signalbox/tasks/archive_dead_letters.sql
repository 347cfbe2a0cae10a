-- archive: move one batch of closed dead letters from their table to the audit log in one statement
-- SKIP LOCKED avoids waiting for a redrive of one of them.
WITH gone AS (
    DELETE FROM signalbox.dead_letter_jobs
    WHERE id IN (
        SELECT id FROM signalbox.dead_letter_jobs
        WHERE status IN ('resolved', 'ignored', 'redriven') AND coalesce(resolved_at, redriven_at) < %(before)s
        LIMIT %(batch)s
        FOR UPDATE SKIP LOCKED
    )
    RETURNING *
)
INSERT INTO signalbox.audit_log (actor, action, entity_type, entity_id, detail)
SELECT 'signalbox', 'dead_letter.archived', 'dead_letter', gone.id::text, jsonb_strip_nulls(to_jsonb(gone)) FROM gone;
