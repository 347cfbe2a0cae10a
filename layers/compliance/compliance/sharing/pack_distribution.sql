-- pack: the pack of a live company
SELECT p.company_id::text, p.site_id::text, p.storage_path, coalesce(p.file_size_bytes, 0)
FROM compliance.audit_packs p JOIN compliance.companies c ON c.id = p.company_id AND c.deleted_at IS NULL
WHERE p.id = %(pack_id)s;

-- insert: a row for each recipient, however often and in whatever case they are named
INSERT INTO compliance.pack_distributions
    (id, pack_id, job_id, distribution_method, delivery, recipient_email, recipient_name, message, token_hash,
     shared_link_expires_at, requested_by)
SELECT r.id, %(pack_id)s, %(job_id)s, %(method)s, %(delivery)s, r.email, r.name, %(message)s, r.token_hash,
       %(expires_at)s, %(requested_by)s
FROM jsonb_to_recordset(%(rows)s) AS r (id uuid, email text, name text, token_hash text)
ON CONFLICT (job_id, lower(recipient_email)) DO NOTHING
RETURNING id::text;

-- look: what has become of the job's rows; one is open until it has ended, or nothing is at work on it any more
SELECT d.id::text, d.status,
       d.status = 'PENDING' AND d.revoked_at IS NULL AND EXISTS (
           SELECT FROM signalbox.jobs j
           WHERE j.job_type = 'deliver_pack' AND j.subject_id = d.id::text AND j.completed_at IS NULL
       )
FROM compliance.pack_distributions d
WHERE d.job_id = %(job_id)s AND d.pack_id = %(pack_id)s
ORDER BY lower(d.recipient_email);
