-- columns: what a BulkAction has
id::text, action, selection, rate_per_minute, next_at, cursor, status, counts, refused, requested_by, reason, created_at,
updated_at, finished_at
