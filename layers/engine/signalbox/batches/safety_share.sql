-- count_handed_over: what runs of this slot have deleted that then handed it to a continuation
SELECT coalesce(sum(items), 0) FROM signalbox.job_history
WHERE job_type = %(task)s AND slot = %(slot)s AND status = 'succeeded' AND more;
