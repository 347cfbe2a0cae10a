-- matches: the jobs that a JobFilter names
(%(ids)s::uuid[] IS NULL OR id = ANY (%(ids)s::uuid[]))
AND (%(status)s::text IS NULL OR status = %(status)s)
-- Jobs that wait are in three partial indexes, and in none by their status.
AND (%(status)s::text IS NULL OR %(status)s <> 'queued' OR send_at IS NOT NULL)
AND (
    %(status)s::text IS NULL OR %(status)s <> 'pending'
    OR send_at IS NOT NULL OR (status = 'pending' AND unmet_dependencies > 0) OR held_by IS NOT NULL
)
AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
AND (%(lane)s::text IS NULL OR lane = %(lane)s)
-- BETWEEN stands for `=`, with which the planner would drop the column from newest_first.
AND (%(tenant)s::text IS NULL OR tenant BETWEEN %(tenant)s AND %(tenant)s)
AND (%(cap_key)s::text IS NULL OR cap_key BETWEEN %(cap_key)s AND %(cap_key)s)
AND (%(group)s::text IS NULL OR job_group BETWEEN %(group)s AND %(group)s)
AND (%(tag)s::text IS NULL OR tags @> ARRAY[%(tag)s::text])
AND (%(subject)s::text IS NULL OR subject_id = %(subject)s)
AND (%(correlation)s::text IS NULL OR correlation_id = %(correlation)s)
AND (%(payload)s::jsonb IS NULL OR payload @> %(payload)s::jsonb)
AND (%(parent)s::uuid IS NULL OR parent_job_id BETWEEN %(parent)s::uuid AND %(parent)s::uuid)
AND (%(schedule)s::text IS NULL OR schedule_id = (
    SELECT s.id FROM signalbox.job_schedules AS s WHERE s.name = %(schedule)s OR s.id::text = %(schedule)s LIMIT 1
))
-- Use the primary key as far as it goes: a page of the last hour must not read a year.
AND (%(since)s::timestamptz IS NULL OR (id >= %(first_id)s::uuid AND created_at >= %(since)s))
AND (%(until)s::timestamptz IS NULL OR created_at <= %(until)s)

-- newest_first: the order of a page, along the index of the group, parent, key or tenant that is asked for
-- By `id` alone the planner, which knows how frequent a value is and not how old, walks the primary key: past all newer
-- jobs, where those of the value are old. And `id` without its table is the text of the output, which no index has.
CASE WHEN %(page_by)s = 'group' THEN job_group END DESC, CASE WHEN %(page_by)s = 'parent' THEN parent_job_id END DESC,
CASE WHEN %(page_by)s = 'cap_key' THEN cap_key END DESC, CASE WHEN %(page_by)s = 'tenant' THEN tenant END DESC,
jobs.id DESC
