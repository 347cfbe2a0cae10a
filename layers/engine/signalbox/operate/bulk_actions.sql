-- create: keep an action, which its creator begins
INSERT INTO signalbox.bulk_actions (action, selection, rate_per_minute, requested_by, reason, leased_until)
VALUES (%(action)s, %(selection)s, %(rate)s, %(by)s, %(reason)s, clock_timestamp() + %(lease)s)
RETURNING id::text;

-- find: return one
SELECT
    -- include: bulk_action.columns
FROM signalbox.bulk_actions WHERE id = %(id)s;

-- list_newest: return the newest, of a tenant and in a state where these are given
SELECT
    -- include: bulk_action.columns
FROM signalbox.bulk_actions
WHERE (%(tenant)s::text IS NULL OR tenant = %(tenant)s) AND (%(status)s::text IS NULL OR status = %(status)s)
ORDER BY bulk_actions.id DESC
LIMIT %(limit)s;

-- list_open: return the actions that nobody is at work on, the oldest first
SELECT id::text FROM signalbox.bulk_actions
WHERE status = 'running' AND (leased_until IS NULL OR leased_until < clock_timestamp())
ORDER BY bulk_actions.id;

-- take: take one to work on it, unless somebody else has
UPDATE signalbox.bulk_actions SET leased_until = clock_timestamp() + %(lease)s
WHERE id = %(id)s AND status = 'running' AND (leased_until IS NULL OR leased_until < clock_timestamp())
RETURNING
    -- include: bulk_action.columns
;

-- record: add what a batch did; nothing is returned where the action has been cancelled
UPDATE signalbox.bulk_actions AS a
SET counts = a.counts || (
        SELECT coalesce(jsonb_object_agg(key, value::integer + coalesce((a.counts ->> key)::integer, 0)), '{}')
        FROM jsonb_each_text(%(counts)s)
    ),
    refused = (
        SELECT coalesce(jsonb_agg(one ORDER BY place), '[]')
        FROM jsonb_array_elements(a.refused || %(refused)s) WITH ORDINALITY AS r (one, place) WHERE place <= 10
    ),
    cursor = coalesce(%(cursor)s, a.cursor), next_at = coalesce(%(next_at)s, a.next_at), updated_at = clock_timestamp()
WHERE id = %(id)s AND status = 'running'
RETURNING id;

-- leave: end a pass, and the action where nothing is left to do
UPDATE signalbox.bulk_actions
SET leased_until = NULL, cursor = %(cursor)s, updated_at = clock_timestamp(),
    status = CASE WHEN %(done)s THEN 'completed' ELSE status END, finished_at = CASE WHEN %(done)s THEN clock_timestamp() END
WHERE id = %(id)s AND status = 'running';

-- cancel: end one before its time
UPDATE signalbox.bulk_actions SET status = 'cancelled', finished_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE id = %(id)s AND status = 'running'
RETURNING id;
