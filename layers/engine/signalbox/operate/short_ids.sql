-- find_jobs: return for each range of ids its first three jobs
SELECT ARRAY(
    SELECT x.id::text FROM signalbox.jobs AS x
    WHERE x.id BETWEEN g.first AND g.last AND (%(tenant)s::text IS NULL OR x.tenant = %(tenant)s)
    ORDER BY x.id LIMIT 3
)
FROM unnest(%(firsts)s::uuid[], %(lasts)s::uuid[]) WITH ORDINALITY AS g (first, last, place)
ORDER BY g.place;

-- find_dead_letters: return for each range of ids its first three dead letters
SELECT ARRAY(
    SELECT x.id::text FROM signalbox.dead_letter_jobs AS x
    WHERE x.id BETWEEN g.first AND g.last AND (%(tenant)s::text IS NULL OR x.tenant = %(tenant)s)
    ORDER BY x.id LIMIT 3
)
FROM unnest(%(firsts)s::uuid[], %(lasts)s::uuid[]) WITH ORDINALITY AS g (first, last, place)
ORDER BY g.place;

-- find_backfills: return for each range of ids its first three backfills
SELECT ARRAY(
    SELECT x.id::text FROM signalbox.backfills AS x
    WHERE x.id BETWEEN g.first AND g.last
    ORDER BY x.id LIMIT 3
)
FROM unnest(%(firsts)s::uuid[], %(lasts)s::uuid[]) WITH ORDINALITY AS g (first, last, place)
ORDER BY g.place;

-- find_bulk_actions: return for each range of ids its first three bulk actions
SELECT ARRAY(
    SELECT x.id::text FROM signalbox.bulk_actions AS x
    WHERE x.id BETWEEN g.first AND g.last AND (%(tenant)s::text IS NULL OR x.tenant = %(tenant)s)
    ORDER BY x.id LIMIT 3
)
FROM unnest(%(firsts)s::uuid[], %(lasts)s::uuid[]) WITH ORDINALITY AS g (first, last, place)
ORDER BY g.place;
