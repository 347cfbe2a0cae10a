-- note: record who did what to which thing, and why
INSERT INTO signalbox.audit_log (actor, action, entity_type, entity_id, detail)
VALUES (%(actor)s, %(action)s, %(entity_type)s, %(entity_id)s, %(detail)s);

-- note_each: record the same for many things of a kind
INSERT INTO signalbox.audit_log (actor, action, entity_type, entity_id, detail)
SELECT %(actor)s, %(action)s, %(entity_type)s, id, %(detail)s FROM unnest(%(ids)s::text[]) AS id;

-- list_newest: return what was done to a thing
SELECT at, actor, action, detail FROM signalbox.audit_log
WHERE entity_type = %(entity_type)s AND entity_id = %(entity_id)s
ORDER BY id DESC LIMIT 50;
