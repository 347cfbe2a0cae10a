-- matches: the jobs that a JobFilter names
(%(ids)s::uuid[] IS NULL OR id = ANY (%(ids)s::uuid[]))
AND (%(status)s::text IS NULL OR status = %(status)s)
AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
AND (%(lane)s::text IS NULL OR lane = %(lane)s)
AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
AND (%(cap_key)s::text IS NULL OR cap_key = %(cap_key)s)
AND (%(group)s::text IS NULL OR job_group = %(group)s)
AND (%(tag)s::text IS NULL OR tags @> ARRAY[%(tag)s::text])
AND (%(subject)s::text IS NULL OR subject_id = %(subject)s)
AND (%(correlation)s::text IS NULL OR correlation_id = %(correlation)s)
AND (%(payload)s::jsonb IS NULL OR payload @> %(payload)s::jsonb)
AND (%(parent)s::uuid IS NULL OR parent_job_id = %(parent)s::uuid)
AND (%(schedule)s::text IS NULL OR schedule_id = (
    SELECT s.id FROM signalbox.job_schedules AS s WHERE s.name = %(schedule)s OR s.id::text = %(schedule)s LIMIT 1
))
-- Use the primary key as far as it goes: a page of the last hour must not read a year.
AND (%(since)s::timestamptz IS NULL OR (id >= %(first_id)s::uuid AND created_at >= %(since)s))
AND (%(until)s::timestamptz IS NULL OR created_at <= %(until)s)
