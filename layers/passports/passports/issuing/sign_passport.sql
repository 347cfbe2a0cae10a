-- lock: the version; a second job for it waits
SELECT status, tenant_id, passport_id, snapshot_id, rule_package_version_id, issued_at, compiler_build_id,
    payload_canonical, payload_hash, proof_canonical, proof_root_hash, receipt_canonical, receipt_hash
FROM passports.passport_versions
WHERE id = %(passport_version_id)s AND tenant_id::text = coalesce(%(tenant)s, tenant_id::text)
FOR UPDATE;

-- sign: it carries its signature from now on
UPDATE passports.passport_versions
SET status = 'SIGNED', signature = %(signature)s, signing_key_id = %(key_id)s, signing_key_public = %(public)s
WHERE id = %(passport_version_id)s AND tenant_id = %(tenant_id)s;
