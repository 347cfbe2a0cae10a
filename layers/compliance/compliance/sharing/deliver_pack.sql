-- find: the distribution, with its pack of a live company
SELECT d.status, d.revoked_at IS NOT NULL AS is_revoked, d.delivery, d.recipient_email, d.recipient_name, d.message,
       d.shared_link_expires_at AS expires_at, p.storage_path AS path, p.output_format, c.name AS company
FROM compliance.pack_distributions d
JOIN compliance.audit_packs p ON p.id = d.pack_id
JOIN compliance.companies c ON c.id = p.company_id AND c.deleted_at IS NULL
WHERE d.id = %(distribution_id)s;

-- keep_token: the hash of the token that is sent, which is a new one after the secret has changed
UPDATE compliance.pack_distributions SET token_hash = %(token_hash)s, updated_at = now()
WHERE id = %(distribution_id)s AND token_hash IS DISTINCT FROM %(token_hash)s;

-- mark_sent: that SES has taken the mail
UPDATE compliance.pack_distributions SET status = 'SENT', sent_at = now(), updated_at = now()
WHERE id = %(distribution_id)s AND status <> 'SENT';
