-- serves: 1
-- Digests that are off have a next time as well. trigger_digests used to take it away: it plans them anew at its next run.

UPDATE forecasts.organizations SET next_digest_at = now()
WHERE next_digest_at IS NULL AND notification_preferences -> 'digest' -> 'enabled' = 'false';
