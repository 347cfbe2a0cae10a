-- list_canaries: list the active canaries, by the index watchpoints_canaries
SELECT id, organization_id, metadata -> 'expected_triggered', is_triggered FROM forecasts.watchpoints
WHERE metadata ->> 'system_role' = 'canary' AND status = 'active' AND created_at <= %(now)s
ORDER BY id;

-- note_mismatch: note a mismatch once a slot, however often the slot runs
INSERT INTO forecasts.audit_logs (organization_id, actor, action, entity_type, entity_id, detail, created_at)
VALUES (%(organization_id)s, 'signalbox', 'canary.mismatched', 'watchpoint', %(id)s, %(detail)s, %(now)s)
ON CONFLICT (entity_id, (detail ->> 'slot')) WHERE action = 'canary.mismatched' DO NOTHING;
