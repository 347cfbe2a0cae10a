-- open: a head for a chain that has none; its hash is that of nothing
INSERT INTO passports.event_heads (tenant_id, aggregate_type, aggregate_id, seq, hash)
VALUES (%(tenant_id)s, %(aggregate_type)s, %(aggregate_id)s, 0, decode(repeat('00', 32), 'hex'))
ON CONFLICT DO NOTHING;

-- lock: the head, and the transaction's time
SELECT seq, hash, now() FROM passports.event_heads
WHERE tenant_id = %(tenant_id)s AND aggregate_type = %(aggregate_type)s AND aggregate_id = %(aggregate_id)s
FOR UPDATE;

-- append: the event, which becomes the head
WITH appended AS (
    INSERT INTO passports.events
        (id, tenant_id, aggregate_type, aggregate_id, seq, event_type, occurred_at, payload, prev_hash, hash)
    VALUES (%(id)s, %(tenant_id)s, %(aggregate_type)s, %(aggregate_id)s, %(seq)s, %(event_type)s, %(occurred_at)s,
            %(payload)s, %(prev_hash)s, %(hash)s)
)
UPDATE passports.event_heads SET seq = %(seq)s, hash = %(hash)s
WHERE tenant_id = %(tenant_id)s AND aggregate_type = %(aggregate_type)s AND aggregate_id = %(aggregate_id)s;
