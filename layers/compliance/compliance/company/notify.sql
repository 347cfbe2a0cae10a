-- store: the rows that nobody has stored under their keys
INSERT INTO compliance.notifications
    (company_id, user_id, site_id, alert_type, severity, channel, title, message, entity_type, entity_id, action_url,
     metadata, dedupe_key)
SELECT %(company_id)s, n.user_id, n.site_id, n.alert_type, n.severity, n.channel, n.title, n.message, n.entity_type,
       n.entity_id, n.action_url, n.metadata, n.dedupe_key
FROM jsonb_to_recordset(%(rows)s) AS n (
    user_id uuid, site_id uuid, alert_type text, severity text, channel text, title text, message text,
    entity_type text, entity_id uuid, action_url text, metadata jsonb, dedupe_key text)
ON CONFLICT (dedupe_key) DO NOTHING
RETURNING id::text, dedupe_key;
