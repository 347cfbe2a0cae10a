-- lock: the snapshot
SELECT tenant_id::text, status FROM passports.data_snapshots
WHERE id = %(id)s AND (%(tenant)s::text IS NULL OR tenant_id::text = %(tenant)s)
FOR NO KEY UPDATE;

-- count: its items, and those of them whose facts are there and of the same tenant
SELECT count(*), count(f.id) FROM passports.data_snapshot_items i
LEFT JOIN passports.facts f ON f.id = i.fact_id AND f.tenant_id = %(tenant)s AND i.tenant_id = %(tenant)s
WHERE i.snapshot_id = %(id)s;

-- set_ready: the snapshot may be sealed
UPDATE passports.data_snapshots SET status = 'READY' WHERE id = %(id)s AND tenant_id = %(tenant)s;
