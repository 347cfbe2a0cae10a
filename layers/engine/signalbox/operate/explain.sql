-- explain: return why a job does not run
SELECT reason, since, until, kind, key, detail FROM signalbox.explain_job(%(id)s::uuid);
