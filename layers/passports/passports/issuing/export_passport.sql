-- find: the version, with what was signed
SELECT tenant_id, status, payload_hash, receipt_hash, version, payload_canonical, receipt_canonical, signature,
    coalesce(signing_key_id, ''), signing_key_public
FROM passports.passport_versions
WHERE id = %(passport_version_id)s AND tenant_id::text = coalesce(%(tenant)s, tenant_id::text);

-- store: the file, unless its row is there
INSERT INTO passports.passport_exports (tenant_id, passport_version_id, format, key, bytes, sha256)
VALUES (%(tenant_id)s, %(passport_version_id)s, %(format)s, %(key)s, %(bytes)s, %(sha256)s)
ON CONFLICT (passport_version_id, format, key) DO NOTHING;

-- refresh: what the file is now; a newer library may write other bytes
UPDATE passports.passport_exports SET bytes = %(bytes)s, sha256 = %(sha256)s
WHERE passport_version_id = %(passport_version_id)s AND format = %(format)s AND key = %(key)s
    AND tenant_id = %(tenant_id)s AND sha256 <> %(sha256)s;
