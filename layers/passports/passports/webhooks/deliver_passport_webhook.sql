-- find: the delivery, with its endpoint and its event of the same tenant
SELECT d.id::text, d.tenant_id::text, d.status, d.http_status, p.url, p.secret, e.id::text, e.event_type,
       e.aggregate_type, e.aggregate_id::text, e.occurred_at, e.payload
FROM passports.webhook_deliveries d
JOIN passports.webhook_endpoints p ON p.id = d.endpoint_id AND p.tenant_id = d.tenant_id
JOIN passports.events e ON e.id = d.event_id AND e.tenant_id = d.tenant_id
WHERE d.id = %(id)s AND (%(tenant)s::text IS NULL OR d.tenant_id::text = %(tenant)s);

-- count: one more request
UPDATE passports.webhook_deliveries SET attempts = attempts + 1 WHERE id = %(id)s AND tenant_id = %(tenant)s;

-- note: what came of it; what has been delivered stays so
UPDATE passports.webhook_deliveries
SET status = %(status)s, http_status = %(http_status)s, response_headers = %(headers)s, response_body = %(body)s,
    last_error = %(error)s, delivered_at = CASE WHEN %(status)s = 'DELIVERED' THEN now() END
WHERE id = %(id)s AND tenant_id = %(tenant)s AND status <> 'DELIVERED';
