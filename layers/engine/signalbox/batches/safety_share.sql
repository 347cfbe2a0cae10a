-- count_handed_over: count the rows deleted by runs of this slot that then handed it to a continuation
SELECT coalesce(sum(items), 0) FROM signalbox.job_history
WHERE job_type = %(task)s AND slot = %(slot)s AND status = 'succeeded' AND more;
