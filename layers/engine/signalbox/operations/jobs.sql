-- send_signal: send it, and return whether it is the first with its key, and the jobs that it makes due
SELECT is_first, woken::text[] FROM signalbox.signal(%(key)s, %(payload)s, %(by)s);
