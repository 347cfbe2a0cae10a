-- delete_runs: delete one batch of a task's oldest rows; SKIP LOCKED lets two prunings share the work
DELETE FROM signalbox.job_history
WHERE (id, slot) IN (
    SELECT id, slot FROM signalbox.job_history
    WHERE job_type = %(job_type)s AND started_at < %(before)s AND status <> 'running'
        AND (slot < %(oldest)s OR started_at < %(overdue)s)
    ORDER BY started_at
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
);

-- delete_backfill_slots: delete one batch of the slots of backfills that finished long ago
DELETE FROM signalbox.backfill_slots
WHERE (backfill_id, slot) IN (
    SELECT s.backfill_id, s.slot
    FROM signalbox.backfills AS b JOIN signalbox.backfill_slots AS s ON s.backfill_id = b.id
    WHERE b.finished_at < %(before)s
    LIMIT %(batch)s
);

-- delete_bulk_actions: delete one batch of the bulk actions that finished long ago
DELETE FROM signalbox.bulk_actions
WHERE id IN (SELECT id FROM signalbox.bulk_actions WHERE finished_at < %(before)s LIMIT %(batch)s);

-- delete_backfills: delete one batch of those backfills, once their slots are gone
DELETE FROM signalbox.backfills
WHERE id IN (SELECT id FROM signalbox.backfills WHERE finished_at < %(before)s LIMIT %(batch)s);
