-- view: count one view of a link that still works, and find its file
UPDATE compliance.pack_distributions d
SET view_count = d.view_count + 1, last_viewed_at = clock_timestamp(), updated_at = clock_timestamp()
FROM compliance.audit_packs p
JOIN compliance.companies c ON c.id = p.company_id AND c.deleted_at IS NULL
WHERE d.token_hash = %(token_hash)s AND p.id = d.pack_id
  AND d.revoked_at IS NULL AND d.shared_link_expires_at > clock_timestamp()
RETURNING p.storage_path;

-- exists: whether there was ever such a link
SELECT 1 FROM compliance.pack_distributions WHERE token_hash = %(token_hash)s;
