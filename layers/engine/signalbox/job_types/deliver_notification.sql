-- leave: add one notification for each recipient; a second attempt adds none
INSERT INTO signalbox.notifications (tenant, recipient, notification_id, subject, body, job_id)
SELECT %(tenant)s, recipient, %(notification_id)s, %(subject)s, %(body)s, %(job_id)s::uuid
FROM unnest(%(recipients)s::text[]) AS recipient
ON CONFLICT ON CONSTRAINT notified_once_a_job DO NOTHING;
