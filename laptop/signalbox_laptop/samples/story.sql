-- Each row is a line of what came of the engine's sample data.
SELECT count(*) FILTER (WHERE trigger = 'catch_up') || ' slot that was missed is caught up, '
    || count(*) FILTER (WHERE trigger = 'backfill') || ' of a backfill are run' FROM signalbox.job_history
UNION ALL
SELECT count(*) || ' run whose worker vanished is ended' FROM signalbox.job_history WHERE error ->> 'type' = 'WorkerLost';
