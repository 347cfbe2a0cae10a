-- fold_slots: each slot's state: at work now, else done, else done in part, else the strongest of what is left
SELECT slot,
    CASE
        WHEN bool_or(status = 'running') THEN 'running'
        WHEN bool_or(status = 'succeeded' AND NOT more) THEN 'succeeded'
        WHEN bool_or(status = 'succeeded') THEN 'partial'
        WHEN bool_or(status = 'failed') THEN 'failed'
        WHEN bool_or(status = 'skipped') THEN 'skipped'
        ELSE 'missed'
    END,
    sum(items),
    count(*) FILTER (WHERE ran)
FROM signalbox.job_history
WHERE job_type = %(task)s AND slot >= %(since)s AND slot <= %(until)s AND (ran OR status = 'missed')
GROUP BY slot
ORDER BY slot;
