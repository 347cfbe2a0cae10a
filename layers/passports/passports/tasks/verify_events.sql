-- read: the next events, in the order of their chains, each with the head of its chain
SELECT e.id, e.tenant_id, e.aggregate_type, e.aggregate_id, e.seq, e.event_type, e.actor_id, e.occurred_at, e.payload,
       e.prev_hash, e.hash, h.seq, encode(h.hash, 'hex')
FROM (
    -- The page alone, along the index.
    SELECT * FROM passports.events
    WHERE (%(tenant)s::uuid IS NULL OR tenant_id = %(tenant)s)
      AND (%(after_tenant)s::uuid IS NULL
           OR (tenant_id, aggregate_type, aggregate_id, seq)
              > (%(after_tenant)s::uuid, %(after_type)s::text, %(after_aggregate)s::uuid, %(after_seq)s::bigint))
    ORDER BY tenant_id, aggregate_type, aggregate_id, seq LIMIT %(limit)s
) e
LEFT JOIN passports.event_heads h
    ON h.tenant_id = e.tenant_id AND h.aggregate_type = e.aggregate_type AND h.aggregate_id = e.aggregate_id
ORDER BY e.tenant_id, e.aggregate_type, e.aggregate_id, e.seq;

-- lonely_heads: heads of chains without events
SELECT h.tenant_id::text, h.aggregate_type, h.aggregate_id::text, h.seq
FROM passports.event_heads h
WHERE (%(tenant)s::uuid IS NULL OR h.tenant_id = %(tenant)s)
  AND NOT EXISTS (SELECT 1 FROM passports.events e
                  WHERE e.tenant_id = h.tenant_id AND e.aggregate_type = h.aggregate_type
                    AND e.aggregate_id = h.aggregate_id)
ORDER BY 1, 2, 3;
