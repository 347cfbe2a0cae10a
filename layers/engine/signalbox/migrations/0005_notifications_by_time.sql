-- serves: 2
-- They come in the order of their time, and prune_jobs looks for the old ones by it.

CREATE INDEX notifications_by_time ON signalbox.notifications USING brin (created_at);
